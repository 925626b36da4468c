"""What docs/time.md shows is what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cronwright.cli.main import app

ROOT = Path(__file__).parents[3]
BLOCKS = re.findall(r"^```console\n(.*?)^```", (ROOT / "docs/time.md").read_text(), re.MULTILINE | re.DOTALL)
SHOWN = [
    tuple(example.split("\n", 1)) for block in BLOCKS for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
]


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_an_example_prints_what_the_page_shows(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "cronwright"
    assert CliRunner().invoke(app, arguments).output == output


def test_the_page_has_examples() -> None:
    assert len(SHOWN) > 12
