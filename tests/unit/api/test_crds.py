"""The CRDs are what the models say, and say it in the form that Kubernetes wants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cronwright.api.crds import KINDS, Kind, chart_template, custom_resource_definition, main, openapi_schema

ROOT = Path(__file__).parents[3]
CRDS, REFERENCE, CHART = str(ROOT / "crds"), str(ROOT / "docs/reference.md"), str(ROOT / "charts/cronwright")


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema below this one, with its path."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from fields(field, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from fields(schema[key], f"{path}{mark}")


def named_fields(kind: Kind) -> dict[str, dict[str, Any]]:
    """The fields that are ours to describe: not metadata, and not the keys of objects taken verbatim."""
    found = dict(fields(openapi_schema(kind)))
    verbatim = tuple(f"{path}." for path, field in found.items() if "x-kubernetes-preserve-unknown-fields" in field)
    return {
        path: field
        for path, field in found.items()
        if path != ".metadata" and not path.endswith(("[]", "{}")) and not path.startswith(verbatim)
    }


every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def test_the_checked_in_files_are_those_of_the_models() -> None:
    assert main(["--check", CRDS, "--reference", REFERENCE, "--chart", CHART]) == 0


def test_drift_is_shown_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path)])
    edited = tmp_path / "taskschedules.cronwright.dev.yaml"
    edited.write_text(edited.read_text().replace("maximum: 1000", "maximum: 999"))
    assert main(["--check", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "maximum: 999" in shown
    assert "maximum: 1000" in shown


def test_drift_of_the_chart_is_shown_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(tmp_path / "crds"), "--chart", str(tmp_path)]
    main(arguments)
    edited = tmp_path / "templates/crds/taskschedules.cronwright.dev.yaml"
    edited.write_text(edited.read_text().replace("- ts\n", "- tsk\n"))
    assert main(["--check", *arguments]) == 1
    assert "- tsk" in capsys.readouterr().out


@every_kind
def test_braces_in_a_description_are_text_in_the_chart(kind: Kind) -> None:
    template = chart_template(replace(kind, description="Write {{ name }}."))
    assert 'description: Write {{ "{{" }} name }}.' in template


def test_a_missing_file_is_drift(tmp_path: Path) -> None:
    assert main(["--check", str(tmp_path)]) == 1


@every_kind
def test_every_field_is_described(kind: Kind) -> None:
    assert [path for path, field in named_fields(kind).items() if not field.get("description")] == []


@every_kind
def test_descriptions_are_sentences_on_one_line(kind: Kind) -> None:
    described = {path: field["description"] for path, field in named_fields(kind).items()}
    assert [path for path, text in described.items() if "\n" in text or not text.endswith((".", '".'))] == []


@every_kind
def test_the_schema_is_structural(kind: Kind) -> None:
    forbidden = {"$ref", "$defs", "anyOf", "allOf", "oneOf", "title", "const", "exclusiveMinimum"}
    found = dict(fields(openapi_schema(kind)))
    assert {path: forbidden & field.keys() for path, field in found.items() if forbidden & field.keys()} == {}
    assert [path for path, field in found.items() if "type" not in field] == []


@every_kind
def test_every_list_says_how_it_is_merged_and_how_long_it_may_be(kind: Kind) -> None:
    lists = {path: field for path, field in fields(openapi_schema(kind)) if field["type"] == "array"}
    assert [path for path, field in lists.items() if "x-kubernetes-list-type" not in field] == []
    assert [path for path, field in lists.items() if "maxItems" not in field] == []


@every_kind
def test_status_has_no_defaults_since_absent_means_not_known_yet(kind: Kind) -> None:
    status = openapi_schema(kind)["properties"]["status"]
    assert [path for path, field in fields(status) if "default" in field] == []


def test_an_object_left_out_is_filled_by_the_defaults_inside_it() -> None:
    [schedule] = [openapi_schema(kind) for kind in KINDS if kind.name == "TaskSchedule"]
    spec = schedule["properties"]["spec"]["properties"]
    assert spec["catchUp"]["default"] == {}
    assert spec["catchUp"]["properties"]["tolerance"]["default"] == "1m"
    assert "default" not in spec["retry"]


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("TaskTemplate", "Type, Schedules, Active, Ready, Age"),
        (
            "TaskSchedule",
            "Schedule, TimeZone, Phase, Last, Last Result, Next, Active, Failures, Template, Reason, Age",
        ),
    ],
)
def test_kubectl_get_has_the_agreed_columns(kind: str, columns: str) -> None:
    [definition] = [custom_resource_definition(each) for each in KINDS if each.name == kind]
    [version] = definition["spec"]["versions"]
    assert ", ".join(column["name"] for column in version["additionalPrinterColumns"]) == columns
    assert [c["name"] for c in version["additionalPrinterColumns"] if c.get("priority")] == (
        ["Template", "Reason"] if kind == "TaskSchedule" else []
    )
