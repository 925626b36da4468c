"""What is said in several files about the chart and the image is the same in all of them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/cronwright"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def properties(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every value that the schema knows, with its path."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}{name}", field
        yield from properties(field, f"{path}{name}.")


def defaults(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its default; what Kubernetes defines (resources, affinity, …) is one value."""
    for name, value in values.items():
        field = schema["properties"][name]
        if field.get("additionalProperties") is False:
            yield from defaults(value, field, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


def test_the_image_has_the_version_of_the_package() -> None:
    assert re.findall(r"^ARG VERSION=(.*)$", DOCKERFILE, re.MULTILINE) == [VERSION]


def test_the_schema_describes_every_value() -> None:
    assert [path for path, field in properties(SCHEMA) if not field.get("description", "").endswith(".")] == []


def test_the_schema_refuses_what_it_does_not_know() -> None:
    objects = [(path, field) for path, field in [("", SCHEMA), *properties(SCHEMA)] if "properties" in field]
    assert [path for path, field in objects if field.get("additionalProperties") is not False] == []


def test_every_value_of_the_schema_has_a_default() -> None:
    optional = {"global", "livenessProbe.initialDelaySeconds", "readinessProbe.initialDelaySeconds"}
    leaves = {path for path, field in properties(SCHEMA) if "properties" not in field}
    assert leaves - optional == {path for path, _ in defaults(VALUES, SCHEMA)}


def test_the_readme_of_the_chart_lists_every_value_with_its_default() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]*)` \| .+ \|$", (CHART / "README.md").read_text(), re.MULTILINE)
    assert [(path, json.loads(default)) for path, default in rows] == list(defaults(VALUES, SCHEMA))


def test_both_stages_of_the_image_have_the_same_base() -> None:
    """A venv is tied to the interpreter it was made with."""
    assert len(set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))) == 1


def test_what_the_image_is_made_of_is_there_and_not_ignored() -> None:
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    copied = {source for line in lines for source in line.split()}
    admitted = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert copied == admitted
    assert [source for source in copied if not (ROOT / source).exists()] == []
