"""Which node the devlet on a socket is. Its cluster may have several, and its views are of this one alone."""

import re

from devlet.cli.session import Session
from devlet.errors import DevletError, InvalidInput

__all__ = ["checked", "own_node"]

_NAME = re.compile(r'^kubelet_node_name\{node="([^"\\]+)"\} 1$', re.MULTILINE)  # a kubelet's metric


def own_node(session: Session) -> str:
    """Empty if it is no devlet, or does not say."""
    if not session.is_node:
        return ""
    try:
        found = _NAME.search(session.text("/metrics"))
    except DevletError:
        return ""
    return found[1] if found else ""


def checked(session: Session, wanted: str, hint: str) -> str:
    """The node that is wanted, or else the devlet's own. InvalidInput if these are two; `hint` is what to do then."""
    own = own_node(session)
    if own and wanted and wanted != own:
        raise InvalidInput(f"{session.address} is node {own}, not {wanted}: {hint}")
    return wanted or own
