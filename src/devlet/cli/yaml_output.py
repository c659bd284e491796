"""Documents as YAML in kubectl's style: sorted keys, and blocks for strings of several lines.

Imported only when YAML is requested, because loading the parser takes longer than most commands."""

from typing import Any

import yaml

_SafeDumper: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_Dumper: Any = type("_Dumper", (_SafeDumper,), {"ignore_aliases": lambda self, data: True})

_STR = "tag:yaml.org,2002:str"


def _text(dumper: Any, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text and not any(line.endswith((" ", "\t")) for line in text.split("\n")):
        style = "|"
    elif dumper.resolve(yaml.ScalarNode, text, (True, False)) != _STR:
        style = '"'  # "", "1", "true" and times, which would not be read as strings
    node: yaml.ScalarNode = dumper.represent_scalar(_STR, text, style=style)
    return node


_Dumper.add_representer(str, _text)


def dump(document: Any) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, default_flow_style=False, allow_unicode=True)
    return text
