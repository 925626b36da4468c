"""From a pydantic model to the structural OpenAPI schema that a CRD may hold.

Pydantic speaks JSON Schema: references, titles, `anyOf` with `null` for what may be absent. A structural
schema has none of these, and the API server acts on the defaults it finds in it. So: references are written
out, absent is simply not required, and a default stays only where the API server should fill it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from cronwright.timing import format_duration

Schema = dict[str, Any]


class _JsonSchema(GenerateJsonSchema):
    """Pydantic would write the default of a duration as ISO 8601 (PT1M); our API spells it 1m."""

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, timedelta):
            return format_duration(int(dft.total_seconds()))
        return super().encode_default(dft)


def schema_of(model: type[BaseModel], *, defaults: bool) -> Schema:
    """The structural schema of a model; without defaults for a status, where absent means not known yet."""
    generated = model.model_json_schema(schema_generator=_JsonSchema)
    return _structural(generated, generated.get("$defs", {}), defaults)


def _structural(schema: Mapping[str, Any], definitions: Mapping[str, Any], defaults: bool) -> Schema:
    flat = _without_indirection(schema, definitions)
    result: Schema = {key: value for key, value in flat.items() if key not in _REWRITTEN}
    if "description" in flat:
        result["description"] = " ".join(flat["description"].split())
    if "const" in flat:
        result["enum"] = [flat["const"]]
    if "items" in flat:
        # No defaults inside a list: `kubectl apply` and GitOps tools compare lists as a whole, and would see a change
        # at every look.
        result["items"] = _structural(flat["items"], definitions, False)
    if isinstance(flat.get("additionalProperties"), Mapping):
        result["additionalProperties"] = _structural(flat["additionalProperties"], definitions, defaults)
    if "properties" in flat:
        result["properties"] = {
            name: _structural(field, definitions, defaults) for name, field in flat["properties"].items()
        }
    if defaults and _is_a_default(flat.get("default")):
        # The defaults inside an object fill it, so the object itself only has to be there.
        result["default"] = {} if isinstance(flat["default"], Mapping) else flat["default"]
    return result


_REWRITTEN = {
    "$defs",
    "title",
    "description",
    "const",
    "items",
    "additionalProperties",
    "properties",
    "default",
}


def _is_a_default(value: object) -> bool:
    return value is not None and value != [] and value != {}


def _without_indirection(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """Follow a reference, and the one alternative that is not null; what stands beside them wins."""
    flat = dict(schema)
    while "$ref" in flat or "anyOf" in flat:
        if "$ref" in flat:
            target = definitions[flat.pop("$ref").removeprefix("#/$defs/")]
        else:
            [target] = [option for option in flat.pop("anyOf") if option != {"type": "null"}]
        flat = {**target, **flat}
    return flat
