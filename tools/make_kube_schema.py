"""Make src/devlet/objects/schema/kube_schema.json from the published table of Kubernetes' Go types.

    python tools/make_kube_schema.py kube_protobuf_schema.json

Names that only Go and .proto files use are dropped, as is every member that says what is true anyway.
"""

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src" / "devlet" / "objects" / "schema" / "kube_schema.json"

FIELD_MEMBERS = (
    "number",
    "json_name",
    "wire",
    "type",
    "label",
    "key",
    "pointer",
    "omitempty",
    "omitzero",
    "inline",
    "patch_strategy",
    "patch_merge_key",
    "list_type",
    "list_map_keys",
    "map_type",
    "default",
)
USUAL = {"json_name": "", "label": "single", "wire": "bytes", "key": "string"}
COMMENTS = ("special", "map_type", "required")


def field(source: dict[str, Any]) -> dict[str, Any]:
    made = {name: source[name] for name in FIELD_MEMBERS if name in source and source[name] != USUAL.get(name)}
    if "patch_strategy" in made:
        made["patch_strategy"] = made["patch_strategy"].split(",")
    return made


def message(name: str, source: dict[str, Any]) -> dict[str, Any]:
    kept = {member: source[member] for member in COMMENTS if member in source}
    return {"name": name, "fields": [field(f) for f in source["fields"]], **kept}


def table(source: dict[str, Any]) -> dict[str, Any]:
    messages = source["messages"]
    return {
        "version": source["version"],
        "kinds": source["kinds"],
        "special": {name: m["special"] for name, m in messages.items() if "special" in m},
        "messages": {name: message(name, m) for name, m in messages.items()},
    }


def main() -> None:
    source = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    made = json.dumps(table(source), separators=(",", ":"))
    TARGET.write_text(made + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(source['messages'])} messages, {len(made)} bytes")


if __name__ == "__main__":
    main()
