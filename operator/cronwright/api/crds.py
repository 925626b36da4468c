"""`python -m cronwright.api.crds DIR` writes the CRDs; `--check` says whether those in DIR are still right.

The files in `crds/` are checked in, because people apply them with kubectl and the chart ships them; they are
never edited. A change of the API is a change of a model, and this command.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cronwright.api import (
    GROUP,
    VERSION,
    TaskScheduleSpec,
    TaskScheduleStatus,
    TaskTemplateSpec,
    TaskTemplateStatus,
)
from cronwright.api.common import ApiModel
from cronwright.api.reference import reference
from cronwright.api.structural import Schema, schema_of


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. A wide one is shown with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def as_printer_column(self) -> dict[str, Any]:
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return column | ({"priority": 1} if self.wide else {})


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    short_name: str
    description: str
    spec: type[ApiModel]
    status: type[ApiModel]
    columns: tuple[Column, ...]

    @property
    def plural(self) -> str:
        return f"{self.name.lower()}s"

    @property
    def file_name(self) -> str:
        return f"{self.plural}.{GROUP}.yaml"


_READY = '.status.conditions[?(@.type=="Ready")].status'
_AGE = Column("Age", ".metadata.creationTimestamp", "date")

KINDS = (
    Kind(
        name="TaskTemplate",
        short_name="tt",
        description="A TaskTemplate says what to run. A TaskSchedule says when.",
        spec=TaskTemplateSpec,
        status=TaskTemplateStatus,
        columns=(
            Column("Type", ".status.type"),
            Column("Schedules", ".status.schedules", "integer"),
            Column("Active", ".status.activeRuns", "integer"),
            Column("Ready", _READY),
            _AGE,
        ),
    ),
    Kind(
        name="TaskSchedule",
        short_name="ts",
        description="A TaskSchedule says when to run a TaskTemplate: once, at an interval, or by cron.",
        spec=TaskScheduleSpec,
        status=TaskScheduleStatus,
        columns=(
            Column("Schedule", ".status.schedule"),
            Column("TimeZone", ".spec.schedule.timeZone"),
            Column("Phase", ".status.phase"),
            Column("Last", ".status.lastScheduleTime", "date"),
            Column("Last Result", ".status.lastResult"),
            # Not a date: kubectl prints those as an age, and one in the future as <invalid>.
            Column("Next", ".status.nextRunTime"),
            Column("Active", ".status.activeRuns", "integer"),
            Column("Failures", ".status.failed", "integer"),
            Column("Template", ".spec.templateRef.name", wide=True),
            Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', wide=True),
            _AGE,
        ),
    ),
)


def openapi_schema(kind: Kind) -> Schema:
    """The schema of a whole object of this kind."""
    return {
        "type": "object",
        "description": kind.description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {
                "type": "string",
                "description": f"The version of the API that the object is written in: {GROUP}/{VERSION}.",
            },
            "kind": {"type": "string", "description": f"The kind of the object: {kind.name}."},
            "metadata": {"type": "object"},
            "spec": schema_of(kind.spec, defaults=True),
            "status": schema_of(kind.status, defaults=False),
        },
    }


def custom_resource_definition(kind: Kind) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{GROUP}",
            "labels": {"app.kubernetes.io/name": "cronwright"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short_name],
                "categories": ["cronwright"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [column.as_printer_column() for column in kind.columns],
                    "schema": {"openAPIV3Schema": openapi_schema(kind)},
                }
            ],
        },
    }


class _NoAliases(yaml.SafeDumper):
    """Rules that several fields share are written out each time: an anchor would puzzle people and tools."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _dump(data: dict[str, Any]) -> str:
    return yaml.dump(data, Dumper=_NoAliases, width=110, allow_unicode=True)


def manifest(kind: Kind) -> str:
    """The CRD as people apply it with kubectl."""
    return f"# Written by `make crds` from the models: do not edit.\n{_dump(custom_resource_definition(kind))}"


def chart_template(kind: Kind) -> str:
    """The CRD as a template of the chart: Helm upgrades those, and never what stands in a chart's own crds folder."""
    definition = custom_resource_definition(kind)
    name = definition.pop("metadata")["name"]
    # Two braces in a description or a rule are text, and Helm must not take them for its own.
    body = _dump(definition).replace("{{", '{{ "{{" }}')
    return f"""{{{{- /* Written by `make crds` from the models: do not edit. */ -}}}}
{{{{- if .Values.crds.install }}}}
metadata:
  name: {name}
  {{{{- include "cronwright.crdMetadata" . | nindent 2 }}}}
{body}{{{{- end }}}}
"""


def files(directory: Path, reference_page: Path | None, chart: Path | None) -> Iterator[tuple[Path, str]]:
    """Every file that is generated, and what has to stand in it."""
    for kind in KINDS:
        yield directory / kind.file_name, manifest(kind)
        if chart:
            yield chart / "templates" / "crds" / kind.file_name, chart_template(kind)
    if reference_page:
        yield reference_page, reference({kind.name: openapi_schema(kind) for kind in KINDS})


def _difference(path: Path, wanted: str) -> str:
    found = path.read_text() if path.exists() else ""
    lines = difflib.unified_diff(
        found.splitlines(keepends=True), wanted.splitlines(keepends=True), str(path), "the models"
    )
    return "".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cronwright.api.crds",
        description="Write the CustomResourceDefinitions of TaskTemplate and TaskSchedule from the models.",
    )
    parser.add_argument("directory", metavar="DIR", type=Path, help="where the YAML files are, e.g. crds")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; show the difference and exit 1 if there is one"
    )
    parser.add_argument(
        "--reference",
        metavar="FILE",
        type=Path,
        help="the field reference for people, e.g. docs/reference.md",
    )
    parser.add_argument(
        "--chart", metavar="DIR", type=Path, help="the Helm chart that installs the CRDs, e.g. charts/cronwright"
    )
    options = parser.parse_args(arguments)
    generated = files(options.directory, options.reference, options.chart)
    if options.check:
        difference = "".join(_difference(path, text) for path, text in generated)
        sys.stdout.write(difference)
        return 1 if difference else 0
    for path, text in generated:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
