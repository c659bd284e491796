"""Check how deeply YAML is nested before it is loaded.

libyaml loads by recursion in C: sixty thousand brackets crash the process. Reading the events one after the other needs
no stack."""

import yaml

MAX_DEPTH = 100

_STARTS = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_ENDS = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_Loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check(text: bytes | str, *, limit: int = MAX_DEPTH) -> None:
    """Raise YAMLError if the text is nested more deeply than `limit`, or is not YAML."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, _STARTS):
            depth += 1
            if depth > limit:
                raise yaml.YAMLError(f"nested more than {limit} levels deep")
        elif isinstance(event, _ENDS):
            depth -= 1
