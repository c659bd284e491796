"""The form of an answer, as requested with Accept, Accept-Encoding, `?pretty` and the user agent.

A range may request a transformation (`as=Table`), which clients treat as part of the media type. A transformation that
is not supported is skipped like an unsupported media type, and the next range is tried. As in kube-apiserver,
`application/*` matches nothing, and a weight of 0 means "last", not "never".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from devlet.serve.kube_api import openapi_protobuf
from devlet.serve.kube_api.bodies import JSON, PROTOBUF, YAML

__all__ = [
    "AGGREGATED",
    "PARTIAL",
    "PARTIAL_LIST",
    "TABLE",
    "Format",
    "is_pretty",
    "media_types",
    "negotiate",
    "negotiate_discovery",
    "negotiate_openapi",
    "not_acceptable",
    "wants_gzip",
]

TABLE = "Table"
PARTIAL = "PartialObjectMetadata"
PARTIAL_LIST = "PartialObjectMetadataList"
AGGREGATED = "APIGroupDiscoveryList"

_META_VERSIONS = ("v1", "v1beta1")
_MAX_RANGES = 64
_REMEMBERED_LENGTH = 512  # of a header; longer ones are parsed each time
_GZIP_FROM = 128 << 10
_browser = re.compile(r"curl|Wget|Mozilla/5\.0").match
_weight = re.compile(r"(?:0|1)(?:\.[0-9]{0,3})?|\.[0-9]{1,3}").fullmatch


@dataclass(frozen=True, slots=True)
class Format:
    """`as_kind` is Table, PartialObjectMetadata or PartialObjectMetadataList in `version` of meta.k8s.io,
    APIGroupDiscoveryList, or empty for the object as it is."""

    media_type: str = JSON
    as_kind: str = ""
    version: str = ""
    pretty: bool = False

    def content_type(self, *, watch: bool = False) -> str:
        """Return the Content-Type of the answer. It names the transformation only for aggregated discovery."""
        if self.as_kind == AGGREGATED:
            return f"{self.media_type};g=apidiscovery.k8s.io;v={self.version};as={AGGREGATED}"
        return f"{PROTOBUF};stream=watch" if watch and self.media_type == PROTOBUF else self.media_type

    def refusal(self, *, is_list: bool) -> str | None:
        """Return why this form does not fit an object or a list, or None if it fits."""
        if self.as_kind == PARTIAL and is_list:
            return f"you requested {PARTIAL}, but the requested object is a list"
        if self.as_kind == PARTIAL_LIST and not is_list:
            return f"you requested {PARTIAL_LIST}, but the requested object is not a list"
        return None


@dataclass(frozen=True, slots=True)
class _Range:
    type: str
    parameters: dict[str, str]

    @property
    def rank(self) -> tuple[float, bool]:
        """Return a sort key: preferred ranges first, and among equals a named type before the wildcard."""
        return -self._q, self.type == "*/*"

    @property
    def _q(self) -> float:
        text = self.parameters.get("q", "1")
        return min(float(text), 1.0) if _weight(text) else 1.0


def negotiate(accept: str, *, watch: bool = False, protobuf: bool = True) -> Format | None:
    """Return the form for an object, list or stream; None if no accepted form is supported (406).

    Without `protobuf` only JSON and YAML are offered: every client accepts JSON as well."""
    look = _negotiated if len(accept) <= _REMEMBERED_LENGTH else _negotiated.__wrapped__
    return look(accept, watch, protobuf)


@lru_cache(128)  # a client sends the same header with every request
def _negotiated(accept: str, watch: bool, protobuf: bool) -> Format | None:
    for wanted in _ranges(accept):
        if (media_type := _media_type(wanted, media_types(watch=watch, protobuf=protobuf))) is None:
            continue
        if (form := _transformed(wanted.parameters, media_type, watch)) is not None:
            return form
    return None


def negotiate_discovery(accept: str, *, aggregated: bool, protobuf: bool = True) -> Format | None:
    """Return the form for a discovery document. `/api` and `/apis` have an aggregated document for clients that request
    its v2. It is not available as protobuf."""
    for wanted in _ranges(accept):
        if (media_type := _media_type(wanted, media_types(protobuf=protobuf))) is None:
            continue
        parameters = wanted.parameters
        asked = tuple(parameters.get(key, "") for key in ("g", "v", "as"))
        if asked == ("apidiscovery.k8s.io", "v2", AGGREGATED) and aggregated and media_type != PROTOBUF:
            return Format(media_type, AGGREGATED, "v2")
        if not asked[-1]:
            return Format(media_type, pretty=_is_true(parameters.get("pretty", "")))
    return None


def negotiate_openapi(accept: str) -> str | None:
    """Return the media type for OpenAPI 2: JSON, or protobuf by either name. Here `application/*` does match."""
    for wanted in _ranges(accept):
        if wanted.type in (JSON, "application/*", "*/*"):
            return JSON
        if wanted.type in openapi_protobuf.MEDIA_TYPES:
            return openapi_protobuf.MEDIA_TYPE
    return None


def media_types(*, watch: bool = False, protobuf: bool = True) -> tuple[str, ...]:
    """Return the supported media types. YAML cannot frame a stream."""
    return (JSON, *(() if watch else (YAML,)), *((PROTOBUF,) if protobuf else ()))


def not_acceptable(offered: Sequence[str]) -> str:
    """Return the message of a 406."""
    return f"only the following media types are accepted: {', '.join(offered)}"


def is_pretty(form: Format, query: str | None, user_agent: str) -> bool:
    """Return whether to indent. `query` is the value of `?pretty`, None if absent: then browsers and curl get indented
    output."""
    if form.media_type != JSON:
        return False
    if form.pretty:
        return True
    return _is_true(query) if query else bool(_browser(user_agent))


def wants_gzip(accept_encoding: str, size: int, *, watch: bool = False) -> bool:
    """Return whether to compress. Small answers are not worth it, and a stream must not wait in a compressor."""
    if watch or size <= _GZIP_FROM:
        return False
    return any(wanted.type in ("gzip", "*") and wanted.rank[0] for wanted in _ranges(accept_encoding))


def _ranges(header: str) -> list[_Range]:
    return sorted(_parse(header or "*/*"), key=lambda wanted: wanted.rank)


def _parse(header: str) -> Iterator[_Range]:
    for text in header.split(",", _MAX_RANGES)[:_MAX_RANGES]:
        type_, *rest = (part.strip() for part in text.split(";"))
        if type_:
            yield _Range(type_.lower(), {k.strip(): v.strip() for k, _, v in (part.partition("=") for part in rest)})


def _media_type(wanted: _Range, offered: Sequence[str]) -> str | None:
    if wanted.type == "*/*":
        return offered[0]
    return wanted.type if wanted.type in offered else None


def _transformed(parameters: dict[str, str], media_type: str, watch: bool) -> Format | None:
    as_kind = parameters.get("as", "")
    if not as_kind:
        return Format(media_type, pretty=_is_true(parameters.get("pretty", "")))
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in _META_VERSIONS:
        return None
    possible = {PARTIAL}
    if not watch:  # the events of a stream are not lists
        possible.add(PARTIAL_LIST)
    if media_type != PROTOBUF:  # cells are JSON values
        possible.add(TABLE)
    return Format(media_type, as_kind, parameters["v"]) if as_kind in possible else None


def _is_true(text: str) -> bool:
    return text in ("1", "t", "T", "true", "TRUE", "True")
