"""One kubeconfig file as types. Keys that are not here mean nothing to us and are passed over.

Texts of errors never show what is in a file: these files hold secrets.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import field

from devlet.errors import InvalidInput

MAX_BYTES = 4 << 20


class Extension(msgspec.Struct):
    name: str = ""
    extension: Any = None


class Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Extension] = []


class Variable(msgspec.Struct):
    name: str
    value: str = ""


class Exec(msgspec.Struct, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: list[str] = []
    env: list[Variable] = []
    install_hint: str = ""
    interactive_mode: str = ""
    provide_cluster_info: bool = False


class User(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    username: str = ""
    exec: Exec | None = None
    auth_provider: Any = None
    as_: str = field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}


class Context(msgspec.Struct, rename="kebab"):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct):
    name: str
    cluster: Cluster = field(default_factory=Cluster)


class NamedUser(msgspec.Struct):
    name: str
    user: User = field(default_factory=User)


class NamedContext(msgspec.Struct):
    name: str
    context: Context = field(default_factory=Context)


class File(msgspec.Struct, rename="kebab"):
    kind: str = "Config"
    current_context: str = ""
    clusters: list[NamedCluster] = []
    users: list[NamedUser] = []
    contexts: list[NamedContext] = []


def read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as e:
        raise InvalidInput(f"{path}: {e.strerror or e}") from e
    if len(content) > MAX_BYTES:
        raise InvalidInput(f"{path}: larger than {MAX_BYTES} bytes")
    return content


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


def parse(content: bytes, path: Path) -> File:
    """Parse YAML or JSON. `path` is for errors."""
    document = _decode(content, path)
    try:
        file = msgspec.convert({} if document is None else _without_nulls(document), File)
    except msgspec.ValidationError as e:
        raise InvalidInput(f"{path}: {e}") from None
    if file.kind != "Config":
        raise InvalidInput(f"{path}: kind {file.kind!r}, expected Config")
    return file


def _decode(content: bytes, path: Path) -> Any:
    if content.lstrip().startswith(b"{"):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(content)  # YAML does not read every JSON text the same
    try:
        return yaml.load(content, Loader=_Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as e:
        line = f":{e.problem_mark.line + 1}" if e.problem_mark else ""
        raise InvalidInput(f"{path}{line}: not YAML: {e.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as e:
        raise InvalidInput(f"{path}: not YAML: {type(e).__name__ if isinstance(e, RecursionError) else e}") from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value
