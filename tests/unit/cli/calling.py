"""How the tests call the command: in this process, with stdout and stderr apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from cronwright.cli.main import app


def text(*arguments: str, stdin: str | None = None) -> str:
    result = CliRunner().invoke(app, arguments, input=stdin)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def data(*arguments: str, stdin: str | None = None) -> Any:
    return json.loads(text(*arguments, "-o", "json", stdin=stdin))


def refusal(*arguments: str, stdin: str | None = None) -> str:
    """The sentence that a bad command ends with."""
    result = CliRunner().invoke(app, arguments, input=stdin)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    return result.stderr.rstrip("\n")


def manifest(folder: Path, *objects: dict[str, Any]) -> str:
    path = folder / "manifest.yaml"
    path.write_text(yaml.safe_dump_all(objects, sort_keys=False))
    return str(path)


def schedule(name: str = "nightly", **spec: Any) -> dict[str, Any]:
    whole = {"templateRef": {"name": "t"}, "schedule": {"cron": "0 * * * *"}, **spec}
    return {"apiVersion": "cronwright.dev/v1alpha1", "kind": "TaskSchedule", "metadata": {"name": name}, "spec": whole}
