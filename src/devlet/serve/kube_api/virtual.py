"""Resources that are answered and never stored: reviews, tokens, and the legacy way to bind a pod."""

from functools import partial

from aiohttp import web

from devlet.auth import reviews, token_requests
from devlet.auth.rules import Attributes
from devlet.auth.tokens import TokenIssuer
from devlet.cluster.served_store import ServedStore
from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, PODS
from devlet.objects.schema.shape import conform_kind
from devlet.serve.kube_api import answers, bodies
from devlet.serve.kube_api.calls import Call
from devlet.serve.kube_api.gate import Gate
from devlet.serve.kube_api.handlers import method_not_allowed


class Virtual:
    def __init__(self, store: ServedStore, gate: Gate, issuer: TokenIssuer) -> None:
        self._store = store
        self._gate = gate
        self._issuer = issuer

    async def handle(self, call: Call, verb: str) -> web.StreamResponse:
        if verb != "create":
            raise method_not_allowed()
        token = call.target.subresource == "token"
        kind, api_version = ("TokenRequest", "authentication.k8s.io/v1") if token else _kind(call)
        blob = await call.body()
        bodies.check_size(len(blob), bodies.MAX_UNSTORED_BODY)
        body = (await call.decoded(blob, api_version, kind)).document
        if body.get("kind", kind) != kind:
            raise BadRequest(f"{body.get('kind')} cannot be handled as a {kind}")
        # This refuses values of the wrong type, and documents that are nested too deeply.
        await call.computed(len(blob), partial(conform_kind, body, api_version, kind))
        answer = await (self._token(call, body) if token else self._answer(call, body))
        return answers.document(answer, code=201, pretty=call.pretty)

    async def _answer(self, call: Call, body: Document) -> Document:
        authorizer = self._gate.authorizer
        match call.resource.kind.kind:
            case "SelfSubjectReview":
                return reviews.self_subject_review(body, call.user, call.now)
            case "TokenReview":
                return reviews.token_review(body, self._gate.authenticator)
            case "SelfSubjectAccessReview":
                return reviews.self_subject_access_review(body, call.user, authorizer)
            case "SelfSubjectRulesReview":
                return reviews.self_subject_rules_review(body, call.user, authorizer)
            case "SubjectAccessReview":
                return reviews.subject_access_review(body, authorizer)
            case "LocalSubjectAccessReview":
                return reviews.local_subject_access_review(body, call.target.namespace, authorizer)
            case _:
                return await self._bind(call, body)

    async def _bind(self, call: Call, body: Document) -> Document:
        name = (body.get("metadata") or {}).get("name", "")
        wanted = Attributes("create", "", "", "v1", "pods", "binding", call.target.namespace, name)
        self._gate.require(call.user, wanted)
        options = call.write_options("CreateOptions")
        return await self._store.create(
            PODS, body, call.target.namespace, name=name, subresource="binding", options=options
        )

    async def _token(self, call: Call, body: Document) -> Document:
        namespace = call.target.namespace
        account = await self._store.get(call.resource, call.target.name, namespace)
        reference = token_requests.bound_reference(body)
        bound = node = None
        if reference is not None:
            bound = await self._store.get(
                reference.resource, reference.name, namespace if reference.resource.namespaced else ""
            )
            name = (bound.get("spec") or {}).get("nodeName", "") if reference.resource is PODS else ""
            record = self._store.table(NODES).get(("", name))
            node = record.document() if record else None
        wanted = Attributes("create", "", "", "v1", "serviceaccounts", "token", namespace, call.target.name)
        self._gate.admission.admit(call.user, wanted, body, account)
        token_requests.check_node(call.user, account, bound)
        return token_requests.answer(body, account, self._issuer, call.now, bound=bound, node=node)


def _kind(call: Call) -> tuple[str, str]:
    return call.resource.kind.kind, call.resource.api_version
