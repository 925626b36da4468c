"""Parameters: whose value counts, and what is said of one that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from cronwright.api.template import TaskTemplateSpec
from cronwright.core.model import Problem
from cronwright.core.parameters import placeholder, resolve


def with_parameters(*parameters: dict[str, Any]) -> TaskTemplateSpec:
    return TaskTemplateSpec.model_validate({"shell": {"script": "true"}, "parameters": list(parameters)})


REGION: dict[str, Any] = {"name": "region", "enum": ["eu", "us"], "default": "eu"}
DAY = {"name": "day", "pattern": "[0-9]{4}-[0-9]{2}"}
WHO = {"name": "who", "required": True}

RESOLVED: dict[str, tuple[list[dict[str, Any]], list[dict[str, str]], dict[str, str]]] = {
    "none": ([], [{}], {}),
    "a default": ([REGION], [{}], {"region": "eu"}),
    "no default is empty": ([DAY], [{}], {"day": ""}),
    "the schedule's": ([REGION], [{"region": "us"}], {"region": "us"}),
    "the request's over the schedule's": ([REGION], [{"region": "eu"}, {"region": "us"}], {"region": "us"}),
    "the request's beside the schedule's": (
        [REGION, WHO],
        [{"who": "me"}, {"region": "us"}],
        {"region": "us", "who": "me"},
    ),
    "required and given": ([WHO], [{"who": ""}], {"who": ""}),
    "a pattern matches the whole": ([DAY], [{"day": "2027-01"}], {"day": "2027-01"}),
}


@pytest.mark.parametrize(("declared", "given", "expected"), RESOLVED.values(), ids=RESOLVED)
def test_values(declared: list[dict[str, Any]], given: list[dict[str, str]], expected: dict[str, str]) -> None:
    assert resolve(with_parameters(*declared), *given) == expected


REFUSED: dict[str, tuple[list[dict[str, Any]], dict[str, str], str]] = {
    "unknown": (
        [REGION, WHO],
        {"zone": "a"},
        "spec.parameters.zone: the template has no such parameter; it has region, who.",
    ),
    "unknown, of a template without any": (
        [],
        {"x": "1"},
        "spec.parameters.x: the template has no such parameter; it has none.",
    ),
    "required": ([WHO], {}, "spec.parameters.who: the template requires it; give it a value."),
    "not in enum": ([REGION], {"region": "EU"}, "spec.parameters.region: 'EU' is not one of eu, us."),
    "not the pattern": (
        [DAY],
        {"day": "2027"},
        "spec.parameters.day: '2027' does not match the pattern [0-9]{4}-[0-9]{2}.",
    ),
    "only a part of it": (
        [DAY],
        {"day": "2027-01\nx"},
        "spec.parameters.day: '2027-01\\nx' does not match the pattern [0-9]{4}-[0-9]{2}.",
    ),
    "a pattern that is none": (
        [{"name": "x", "pattern": "["}],
        {"x": "1"},
        "spec.parameters.x: the template's pattern '[' is not valid: unterminated character set at position 0.",
    ),
}


@pytest.mark.parametrize(("declared", "given", "sentence"), REFUSED.values(), ids=REFUSED)
def test_refusals(declared: list[dict[str, Any]], given: dict[str, str], sentence: str) -> None:
    assert resolve(with_parameters(*declared), given) == Problem("InvalidParameters", sentence)


def test_a_template_can_be_tried_with_some_value_for_each() -> None:
    assert placeholder(with_parameters(REGION, DAY, WHO, {"name": "size", "enum": ["s", "m"]})) == {
        "region": "eu",
        "day": "",
        "who": "",
        "size": "s",
    }
