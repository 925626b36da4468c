"""`kubectl task` as people and scripts use it: a command, its output and its exit status, with the operator at work."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.chart import kubeconfig
from tests.integration.operating import OperatorProcess
from tests.integration.support import eventually
from tests.integration.workspace import HELLO, Workspace, environment, schedule, template

BIN = Path(sys.executable).parent
NEVER_DUE = "schedule: {cron: '0 6 1 1 *', timeZone: Europe/Berlin}"

GREET = """
apiVersion: cronwright.dev/v1alpha1
kind: TaskTemplate
metadata: {name: greet}
spec:
  parameters: [{name: who, default: world, enum: [world, moon]}]
  python:
    script: print("hello")
    pod:
      annotations: {cluster.cronwright.dev/termination-message: "42"}
"""


def task(
    work: Workspace,
    *arguments: str,
    as_user: Path | None = None,
    program: tuple[str, ...] = (str(BIN / "kubectl-task"),),
) -> subprocess.CompletedProcess[str]:
    """`kubectl-task …`; kubectl itself is not needed for it."""
    environ = {**os.environ, "KUBECONFIG": str(as_user or work.cluster.kubeconfig), "COLUMNS": "60"}
    line = [*program, *arguments, "-n", work.namespace]
    return subprocess.run(line, env=environ, capture_output=True, text=True, timeout=120)


def succeeds(work: Workspace, *arguments: str) -> str:
    done = task(work, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fails(work: Workspace, *arguments: str, code: int = 1, as_user: Path | None = None) -> str:
    """What it says on stderr: one line, whatever went wrong."""
    done = task(work, *arguments, as_user=as_user)
    assert done.returncode == code, done.stdout + done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def rows(table: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()[1:]]


def test_run_starts_one_run_with_its_parameters_and_waits_for_its_result(work: Workspace) -> None:
    work.apply(GREET, schedule("greet", NEVER_DUE, "greet"))
    asked, claimed, ended = succeeds(work, "run", "greet", "-p", "who=moon", "--wait", "--timeout", "1m").splitlines()
    assert re.fullmatch(r"run-\d{8}-\d{6}-[a-z0-9]{4}", asked)
    assert claimed == "1 run claimed."
    [job] = work.jobs("greet")
    assert ended == f"Run {job['metadata']['name']} succeeded: 42"
    assert environment(job)["TASK_PARAM_WHO"] == "moon"
    found = work.get("ts", "greet")
    [request] = found["status"]["requests"]
    assert (request["id"], request["state"], request["runs"], request["succeeded"]) == (asked, "Done", 1, 1)
    eventually(lambda: "request.cronwright.dev" not in json.dumps(work.get("ts", "greet")["metadata"]["annotations"]))
    assert found["metadata"]["generation"] == 1, "a request is no edit"


def test_run_without_wait_prints_the_id_only(work: Workspace) -> None:
    work.apply(HELLO, schedule("later", NEVER_DUE))
    asked = succeeds(work, "run", "later").strip()
    status = work.until("later", lambda s: s.get("succeeded") == 1)
    assert [request["id"] for request in status["requests"]] == [asked]


def test_a_failed_run_fails_the_command(work: Workspace) -> None:
    work.apply(template("broken", exit_code="3"), schedule("broken", NEVER_DUE, "broken"))
    said = fails(work, "run", "broken", "--wait")
    assert re.match(r"Run broken-\S+-1 failed \(exit code 3, Transient\)[.:]", said)


def test_a_refusal_is_told_in_the_operators_words(work: Workspace) -> None:
    work.apply(GREET, template("endless", behaviour="Hang"), schedule("greet", NEVER_DUE, "greet"))
    work.apply(schedule("busy", NEVER_DUE, "endless"))
    assert fails(work, "run", "greet", "-p", "who=mars", "--wait") == (
        "parameters.who: 'mars' is not one of world, moon."
    )
    succeeds(work, "run", "busy")
    work.until("busy", lambda s: s.get("activeRuns") == 1)
    assert fails(work, "run", "busy", "--wait").endswith(" is not over.")
    succeeds(work, "run", "busy", "--concurrency-policy", "Allow")
    work.until("busy", lambda s: s.get("activeRuns") == 2)
    assert "and still going on" in fails(
        work, "run", "busy", "--concurrency-policy", "Allow", "--wait", "--timeout", "3s"
    )


def test_backfill_runs_the_slots_that_the_dry_run_listed(work: Workspace) -> None:
    work.apply(HELLO, schedule("daily", "schedule: {cron: '0 6 * * *', timeZone: Europe/Berlin}"))
    stretch = ("backfill", "daily", "--from", "2026-03-28T06:00", "--to", "2026-03-30T05:00:00Z")
    listed = [row[0] for row in rows(succeeds(work, *stretch, "--dry-run"))]
    assert listed == ["2026-03-28T06:00:00+01:00", "2026-03-29T06:00:00+02:00", "2026-03-30T06:00:00+02:00"]
    assert work.jobs("daily") == []
    asked, claimed, total = succeeds(work, *stretch, "--wait").splitlines()
    assert asked.startswith("backfill-")
    assert (claimed, total) == ("3 runs claimed.", "3 runs: 3 succeeded.")
    table = rows(succeeds(work, "history", "daily"))
    assert [row[1] for row in table] == listed[::-1]
    assert {(row[2], row[4]) for row in table} == {("Backfill", "Succeeded")}


def test_a_backfill_is_judged_by_all_of_its_runs_also_those_that_status_no_longer_lists(work: Workspace) -> None:
    work.apply(
        template("broken", exit_code="3", run_for="1ms"),
        schedule("hourly", "schedule: {cron: '0 * * * *'}\nconcurrencyPolicy: Allow", "broken"),
    )
    done = task(work, "backfill", "hourly", "--from", "2026-01-01", "--to", "2026-01-01T11:00", "--wait")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "12 runs: 12 failed."
    assert len(work.status("hourly")["recentRuns"]) == 10


def test_a_backfill_without_slots_is_refused(work: Workspace) -> None:
    work.apply(HELLO, schedule("yearly", NEVER_DUE))
    stretch = ("backfill", "yearly", "--from", "2026-02-01", "--to", "2026-03-01")
    refused = fails(work, *stretch, "--dry-run")
    assert refused.startswith("The schedule has no slot from 2026-01-31T23:00:00Z to 2026-02-28T23:00:00Z")
    assert fails(work, *stretch, "--wait") == refused
    assert "is not a time" in fails(work, "backfill", "yearly", "--from", "monday", "--to", "now", code=2)


def test_cancel_ends_one_run_or_all(work: Workspace) -> None:
    work.apply(
        template("endless", behaviour="Hang"), schedule("long", NEVER_DUE + "\nconcurrencyPolicy: Allow", "endless")
    )
    for count in (1, 2, 3):
        succeeds(work, "run", "long")
        work.until("long", lambda s, count=count: s.get("activeRuns") == count)  # type: ignore[misc]
    first = rows(succeeds(work, "history", "long"))[-1][0]
    assert succeeds(work, "cancel", "long", first).splitlines()[1:] == [f"Cancelled: {first}."]
    status = work.until("long", lambda s: s.get("activeRuns") == 2)
    assert first not in [run["name"] for run in status["active"]]
    assert succeeds(work, "cancel", "long").splitlines()[1].startswith("Cancelled: long-")
    work.until("long", lambda s: s.get("activeRuns") == 0 and s["cancelled"] == 3)
    assert fails(work, "cancel", "long") == "No run of this schedule is active or waiting."


def test_a_run_that_is_cancelled_fails_whoever_waits_for_it(work: Workspace) -> None:
    work.apply(template("endless", behaviour="Hang"), schedule("long", NEVER_DUE, "endless"))
    waiting = subprocess.Popen(
        [str(BIN / "kubectl-task"), "run", "long", "--wait", "-n", work.namespace],
        env={**os.environ, "KUBECONFIG": str(work.cluster.kubeconfig)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        work.until("long", lambda s: s.get("activeRuns") == 1)
        succeeds(work, "cancel", "long")
        _, said = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
    assert waiting.returncode == 1
    assert said.endswith("was cancelled: Cancelled by a request.\n")


def test_resume_lets_a_paused_schedule_go_on(work: Workspace) -> None:
    work.apply(
        template("broken", exit_code="3", run_for="1ms"),
        schedule("flaky", NEVER_DUE + "\npauseAfterFailures: 1", "broken"),
    )
    assert fails(work, "resume", "flaky") == "The schedule has not paused itself."
    fails(work, "run", "flaky", "--wait")
    work.until("flaky", lambda s: s["phase"] == "Paused")
    assert "flaky is Paused" in task(work, "next", "flaky").stderr
    assert succeeds(work, "resume", "flaky").splitlines()[1] == "The schedule runs again."
    work.until("flaky", lambda s: s["phase"] == "Active")


def test_list_and_next_tell_what_comes(work: Workspace) -> None:
    work.apply(HELLO, schedule("yearly", NEVER_DUE), schedule("once", "schedule: {at: '2020-01-01T00:00:00Z'}"))
    work.until("yearly", lambda s: s.get("nextRunTime"))
    work.until("once", lambda s: s["phase"] == "Completed")
    listed = {row[0]: row[1:] for row in rows(succeeds(work, "list"))}
    assert listed["yearly"][:3] == ["0 6 1 1 *", "Europe/Berlin", "Active"]
    assert re.fullmatch(r"in \d+ [dhms]", listed["yearly"][3])
    assert listed["once"][2] == "Completed"
    everywhere = rows(succeeds(work, "list", "-A"))
    assert [work.namespace, "yearly"] in [row[:2] for row in everywhere]
    slots = [row[0] for row in rows(succeeds(work, "next", "yearly", "--count", "3"))]
    assert [slot[4:] for slot in slots] == ["-01-01T06:00:00+01:00"] * 3
    assert task(work, "next", "once").stderr == "once has no slot left.\n"
    assert task(work, "history", "yearly").stderr == "yearly has not run yet.\n"


def test_kubectl_finds_it_as_a_plugin(work: Workspace) -> None:
    work.apply(HELLO, schedule("plugin", NEVER_DUE))
    kubectl = Path(work.cluster.state.bin) / "kubectl"
    environ = {
        **os.environ,
        "KUBECONFIG": str(work.cluster.kubeconfig),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }
    line = [str(kubectl), "task", "run", "plugin", "--wait", "--namespace", work.namespace]
    done = subprocess.run(line, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "succeeded" in done.stdout


def test_the_namespace_is_that_of_the_context(work: Workspace, tmp_path: Path) -> None:
    work.apply(HELLO, schedule("here", NEVER_DUE))
    config = json.loads(work.cluster.kubectl("config", "view", "--raw", "-o", "json").stdout)
    [context] = config["contexts"]
    there = {"name": "there", "context": {**context["context"], "namespace": work.namespace}}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps({**config, "contexts": [context, there]}))
    program = [str(BIN / "kubectl-task"), "next", "here", "--kubeconfig", str(path)]
    assert subprocess.run([*program, "--context", "there"], capture_output=True).returncode == 0
    elsewhere = subprocess.run(program, capture_output=True, text=True)
    assert elsewhere.stderr == (
        "error: There is no TaskSchedule here in namespace default; see kubectl task list -A.\n"
    )


def test_the_right_to_get_and_patch_schedules_is_all_it_needs(work: Workspace, tmp_path: Path) -> None:
    work.apply(HELLO, schedule("guarded", NEVER_DUE))
    work.kubectl("create", "serviceaccount", "person")
    token = work.kubectl("create", "token", "person").strip()
    person = kubeconfig(work.cluster, token, tmp_path / "person")
    assert 'cannot patch resource "taskschedules"' in fails(work, "run", "guarded", as_user=person)
    work.kubectl("create", "role", "person", "--verb=get,patch", "--resource=taskschedules.cronwright.dev")
    work.kubectl("create", "rolebinding", "person", "--role=person", f"--serviceaccount={work.namespace}:person")

    def runs() -> bool:
        return task(work, "run", "guarded", "--wait", as_user=person).returncode == 0

    eventually(runs)


def test_without_an_operator_the_wait_ends_in_time(work: Workspace, operator: OperatorProcess) -> None:
    work.apply(HELLO, schedule("alone", NEVER_DUE))
    operator.stop()
    try:
        assert "is the operator running?" in fails(work, "run", "alone", "--wait", "--timeout", "1s")
    finally:
        operator.start()
    work.until("alone", lambda s: s.get("succeeded") == 1)


@pytest.mark.parametrize("command", ["run", "cancel", "resume", "history", "next"])
def test_a_missing_schedule_is_one_sentence(work: Workspace, command: str) -> None:
    assert fails(work, command, "ghost") == (
        f"There is no TaskSchedule ghost in namespace {work.namespace}; see kubectl task list -A."
    )
