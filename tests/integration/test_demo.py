"""`make demo` shows what it promises and ends by itself; `make down` leaves nothing running."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hack.cluster import processes
from hack.cluster.control_plane import PARTS
from hack.cluster.folder import CHECKOUT, Folder
from tests.integration.support import PATIENCE, eventually, run_cluster


def run_demo(folder: Path, seconds: float) -> "subprocess.Popen[str]":
    """The demo as CI runs it: no terminal. It watches longer than asked if the machine is slow."""
    line = [sys.executable, str(CHECKOUT / "hack" / "demo"), "--dir", str(folder), "--seconds", f"{seconds:g}"]
    environment = {**os.environ, "CI": "true"}
    return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@dataclass(frozen=True)
class Shown:
    folder: Path
    code: int
    output: str

    def lines(self, *words: str) -> list[str]:
        return [line for line in self.output.splitlines() if all(word in line for word in words)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("demo")
    output, _ = (running := run_demo(folder, seconds=5)).communicate()
    yield Shown(folder, running.returncode, output)
    run_cluster(folder, "down")


def test_the_demo_ends_well_by_itself(demo: Shown) -> None:
    assert demo.code == 0, demo.output


@pytest.mark.parametrize("kind", ["once", "interval", "cron"])
def test_each_kind_of_schedule_fires_a_job_that_completes(demo: Shown, kind: str) -> None:
    assert demo.lines(f"demo-{kind}-", "slot", "Complete after"), demo.output
    [summary] = demo.lines(f"  {kind} ", "is Complete")
    assert "last run" in summary
    assert ("nothing left to run: Completed" if kind == "once" else "next run") in summary


def test_a_retry_and_a_skipped_slot_are_shown(demo: Shown) -> None:
    assert demo.lines("demo-retry-", "attempt 2"), demo.output
    assert demo.lines("demo-retry", "Event RunFailed", "exit code 75"), demo.output
    assert demo.lines("demo-forbid", "Event Forbidden"), demo.output


def test_every_example_is_in_the_table(demo: Shown) -> None:
    for name in ("hello", "every-minute", "open-shop", "fetch-rates"):
        assert [line for line in demo.lines(name, "Active") if line.startswith(name)], demo.output


def test_it_says_what_to_type_next(demo: Shown) -> None:
    for command in ("hack/cluster env", "kubectl get ts", "kubectl describe ts", "kubectl apply -f examples/", "down"):
        assert demo.lines(command, "#"), f"no {command!r} in\n{demo.output}"


def test_the_readme_begins_with_the_two_commands_and_shows_the_first_example_word_for_word() -> None:
    readme = (CHECKOUT / "README.md").read_text()
    commands = [line.split("#")[0].strip() for line in readme.splitlines() if line.startswith("$ ")]
    assert commands[:2] == ["$ make demo", "$ make test"]
    assert f"```yaml\n{(CHECKOUT / 'examples' / 'first.yaml').read_text()}```" in readme


def test_it_tells_when_the_operator_dies(demo: Shown) -> None:
    pids = Folder(demo.folder).pids
    before = processes.find(pids, "operator")
    running = run_demo(demo.folder, seconds=10 * PATIENCE)
    eventually(lambda: (found := processes.find(pids, "operator")) is not None and found != before)
    processes.stop(pids, "operator", kill=True)
    output, _ = running.communicate()
    assert running.returncode == 1, output
    assert "The operator died. The last lines of" in output
    assert "Traceback" not in output


def test_another_demo_on_the_same_cluster_works_and_down_leaves_no_process(demo: Shown) -> None:
    output, _ = (again := run_demo(demo.folder, seconds=0)).communicate()
    assert again.returncode == 0, output
    assert "Already up" in output
    folder = Folder(demo.folder)
    running = [processes.find(folder.pids, name) for name in (*PARTS, "operator")]
    assert all(running), "everything is registered, so that down finds it"
    run_cluster(demo.folder, "down")
    assert not [process for process in running if process is not None and process.alive()]
