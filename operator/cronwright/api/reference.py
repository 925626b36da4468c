"""The page with every field of the API, made from the CRDs' own schema, so that it cannot be out of date."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_OPENING = """\
# Every field

Written by `make crds` from the models; `kubectl explain ts.spec` and `kubectl explain tt.spec` say the same.
Durations are strings such as `90s`, `5m`, `1h30m` or `1d`; times are RFC 3339: `2030-12-24T18:00:00Z`.
A field in **bold** has to be there.
"""


def reference(schemas: Mapping[str, Mapping[str, Any]]) -> str:
    """The page, given the schema of each kind."""
    sections = [_OPENING]
    for kind, schema in schemas.items():
        for part in ("spec", "status"):
            rows = "\n".join(_rows(schema["properties"][part]))
            head = "| field | type | default | meaning |\n|---|---|---|---|"
            sections.append(f"## {kind}.{part}\n\n{head}\n{rows}\n")
    return "\n".join(sections)


def _rows(schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        if "description" not in field:
            continue
        path = f"`{prefix}{name}`"
        label = f"**{path}**" if name in required else path
        default = f"`{_default(field)}`" if field.get("default") not in (None, {}) else ""
        meaning = field["description"].replace("|", "\\|").replace("<", "&lt;")
        yield f"| {label} | {_type(field)} | {default} | {meaning} |"
        if "properties" in field:
            yield from _rows(field, f"{prefix}{name}.")
        elif "properties" in field.get("items", {}):
            yield from _rows(field["items"], f"{prefix}{name}[].")


def _default(field: Mapping[str, Any]) -> str:
    default = field["default"]
    if isinstance(default, bool):
        return str(default).lower()
    return f"[{', '.join(default)}]" if isinstance(default, list) else str(default)


def _type(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_type(field['items'])}"
    if "additionalProperties" in field:
        return f"map to {_type(field['additionalProperties'])}"
    bounds = [str(field[key]) for key in ("minimum", "maximum") if key in field]
    if bounds:
        return f"{field['type']}, {' to '.join(bounds)}" if len(bounds) == 2 else f"{field['type']} from {bounds[0]}"
    return {"date-time": "time", "date": "day"}.get(field.get("format", ""), str(field["type"]))
