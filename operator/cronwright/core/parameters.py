"""Parameters: which values a run gets, and what is wrong with those that were given."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cronwright.api.template import Parameter, TaskTemplateSpec
from cronwright.core.model import Problem

INVALID = "InvalidParameters"


def resolve(
    template: TaskTemplateSpec, *given: Mapping[str, str], where: str = "spec.parameters"
) -> dict[str, str] | Problem:
    """Every parameter's value: later mappings override earlier ones, and all of them the template's defaults."""
    values: dict[str, str] = {}
    for mapping in given:
        values.update(mapping)
    known = {parameter.name: parameter for parameter in template.parameters}
    for name in values:
        if name not in known:
            allowed = ", ".join(known) or "none"
            return Problem(INVALID, f"{where}.{name}: the template has no such parameter; it has {allowed}.")
    resolved: dict[str, str] = {}
    for parameter in template.parameters:
        value = values.get(parameter.name, parameter.default)
        if value is None:
            if parameter.required:
                return Problem(INVALID, f"{where}.{parameter.name}: the template requires it; give it a value.")
            value = ""
        elif problem := _refusal(parameter, value, f"{where}.{parameter.name}"):
            return problem
        resolved[parameter.name] = value
    return resolved


def _refusal(parameter: Parameter, value: str, where: str) -> Problem | None:
    if parameter.enum and value not in parameter.enum:
        return Problem(INVALID, f"{where}: {value!r} is not one of {', '.join(parameter.enum)}.")
    if parameter.pattern is not None:
        try:
            matches = re.fullmatch(parameter.pattern, value)
        except re.error as error:
            return Problem(INVALID, f"{where}: the template's pattern {parameter.pattern!r} is not valid: {error}.")
        if matches is None:
            return Problem(INVALID, f"{where}: {value!r} does not match the pattern {parameter.pattern}.")
    return None


def placeholder(template: TaskTemplateSpec) -> dict[str, str]:
    """Some value for each parameter, so that a template can be tried before any schedule uses it."""
    return {p.name: p.default or (p.enum[0] if p.enum else "") for p in template.parameters}
