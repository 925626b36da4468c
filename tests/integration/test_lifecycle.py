"""How a schedule ends, pauses and goes on, and what its status costs."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.support import eventually
from tests.integration.workspace import HELLO, ONE_RUN, Workspace, in_seconds, moment, schedule, slot, template


def test_max_runs_counts_claims_and_never_overshoots(work: Workspace) -> None:
    work.apply(
        template("slow", run_for="3s"),
        HELLO,
        schedule("many", "schedule: {interval: 1s}\nconcurrencyPolicy: Allow\nmaxRuns: 3", "slow"),
        schedule("clock", "schedule: {interval: 1s}\nconcurrencyPolicy: Allow"),
    )
    status = work.until("many", lambda s: s["phase"] == "Completed")
    assert (status["runs"], status["succeeded"]) == (3, 3)
    seen = work.status("clock")["runs"]
    work.until("clock", lambda s: s["runs"] >= seen + 2)
    assert len(work.jobs("many")) == 3
    assert "nextRunTime" not in work.status("many")
    assert ("Normal", "Completed") in [event[:2] for event in work.events("many")]


def test_a_schedule_expires(work: Workspace) -> None:
    end = in_seconds(6)
    work.apply(HELLO, schedule("brief", f"schedule: {{interval: 1s}}\nexpiresAt: '{end}'\nconcurrencyPolicy: Allow"))
    status = work.until("brief", lambda s: s["phase"] == "Expired")
    assert status["runs"] >= 1
    assert max(slot(job) for job in work.jobs("brief")) <= moment(end)
    assert work.condition("brief")["reason"] == "Expired"
    assert "nextRunTime" not in status


def test_a_schedule_pauses_itself_after_failures_until_somebody_resumes_it(work: Workspace) -> None:
    broken = "schedule: {interval: 1s}\nconcurrencyPolicy: Queue\npauseAfterFailures: 2"
    work.apply(template("broken", exit_code="1", run_for="1ms"), schedule("pausing", broken, "broken"))
    status = work.until("pausing", lambda s: s["phase"] == "Paused")
    assert status["consecutiveFailures"] >= 2
    assert work.condition("pausing", type="Stalled")["reason"] == "TooManyFailures"
    assert work.get("ts", "pausing")["spec"].get("suspend", False) is False, "the spec is the user's"
    failed = work.until("pausing", lambda s: s["activeRuns"] == 0)["failed"]

    work.ask("pausing", "resume", kind="Resume")
    assert work.answer("pausing", "resume")["message"] == "The schedule runs again."
    status = work.until("pausing", lambda s: s["phase"] == "Paused" and s["failed"] > failed)
    failed = work.until("pausing", lambda s: s["activeRuns"] == 0)["failed"]

    work.patch("ts", "pausing", {"spec": {"pauseAfterFailures": 3}})
    status = work.until("pausing", lambda s: s["phase"] == "Paused" and s["failed"] > failed)
    assert status["paused"]["message"].startswith("3 runs failed in a row")
    told = [event[1] for event in work.events("pausing")]
    assert (told.count("TooManyFailures"), told.count("Resumed")) == (3, 2)

    work.ask("pausing", "once")
    work.until("pausing", lambda s: s["recentRuns"][0]["trigger"] == "Manual" and s["activeRuns"] == 0)
    assert work.status("pausing")["phase"] == "Paused", "a run by hand is for trying whether it works again"


def test_finished_jobs_live_as_long_as_their_template_says(work: Workspace) -> None:
    work.apply(
        template("short", "ttlAfterFinished: 1s"),
        schedule("short", ONE_RUN, "short"),
        template("broken", "ttlAfterFinished: 1s\nretry: {maxAttempts: 2, initialDelay: 4s}", exit_code="1"),
        schedule("retried", ONE_RUN, "broken"),
    )
    work.until("retried", lambda s: s.get("retrying"))
    work.until("short", lambda s: s["phase"] == "Completed")
    eventually(lambda: work.jobs("short") == [])
    status = work.until("retried", lambda s: s["phase"] == "Completed")
    assert [record["attempt"] for record in status["recentRuns"]] == [2, 1]
    eventually(lambda: work.jobs("retried") == [])
    assert [record["phase"] for record in work.status("short")["recentRuns"]] == ["Succeeded"]


def test_a_template_may_go_and_come_back(work: Workspace) -> None:
    queue = "schedule: {interval: 1s}\nconcurrencyPolicy: Queue"
    work.apply(template("slow", run_for="3s"), schedule("loyal", queue, "slow"))
    work.until("loyal", lambda s: s["activeRuns"] == 1 and s["queued"] >= 1)
    work.kubectl("delete", "tt", "slow")
    status = work.until("loyal", lambda s: s["phase"] == "Invalid" and s["activeRuns"] == 0)
    ready = work.condition("loyal")
    assert ready["reason"] == "TemplateNotFound"
    assert ready["message"].endswith("create it, or correct the name.")
    assert (status["succeeded"], status["queued"] >= 1) == (1, True), "the run was not touched, and what waits waits"
    work.until("loyal", lambda s: s.get("skips", {}).get("TemplateNotFound", 0) >= 2)

    work.apply(template("slow", run_for="1s"))
    work.until("loyal", lambda s: s["phase"] == "Active" and s["succeeded"] >= 2)
    told = [event[1] for event in work.events("loyal")]
    assert (told.count("TemplateNotFound"), told.count("Ready")) == (1, 1)


def test_a_schedule_may_go_with_its_template(work: Workspace) -> None:
    for name in ("goes", "stays"):
        kept = "Delete" if name == "goes" else "Keep"
        manifest = schedule(name, "schedule: {interval: 1h}")
        work.apply(HELLO, manifest.replace("{name: hello}", f"{{name: hello, onDelete: {kept}}}"))
        work.until(name, lambda s: s["phase"] == "Active")
    owner = work.get("tt", "hello")["metadata"]["uid"]
    owners = eventually(lambda: work.get("ts", "goes")["metadata"].get("ownerReferences"))
    assert [(ref["kind"], ref["uid"]) for ref in owners] == [("TaskTemplate", owner)]
    work.kubectl("delete", "tt", "hello")
    eventually(lambda: [found["metadata"]["name"] for found in work.all("ts")] == ["stays"])


# What a status costs


@contextmanager
def writes(work: Workspace, name: str) -> Iterator[list[str]]:
    """The resource versions of a schedule, as they come: each is a write."""
    seen: list[str] = []
    kubectl = Path(work.cluster.state.bin) / "kubectl"
    command = [str(kubectl), "--kubeconfig", str(work.cluster.kubeconfig), "--namespace", work.namespace]
    command += ["get", "ts", name, "--watch", "-o", 'jsonpath={.metadata.resourceVersion}{"\\n"}']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        try:
            yield seen
            current = work.get("ts", name)["metadata"]["resourceVersion"]
            while current not in seen:
                seen.append(watch.stdout.readline().strip())
        finally:
            watch.terminate()


def test_a_run_costs_two_status_writes(work: Workspace) -> None:
    work.apply(
        template("said", "captureResult: true", run_for="3s", termination_message="42"),
        schedule("cheap", f"schedule: {{at: '{in_seconds(5)}'}}", "said"),
    )
    work.until("cheap", lambda s: "nextRunTime" in s)
    with writes(work, "cheap") as seen:
        status = work.until("cheap", lambda s: s["phase"] == "Completed")
    assert status["recentRuns"][0]["result"] == "42"
    assert len(seen) == 1 + 2, "as it was, and two writes: the run has started, the run is over"


def test_the_writes_of_a_busy_schedule_are_coalesced_and_the_last_one_arrives(work: Workspace) -> None:
    work.apply(
        template("quick", run_for="1ms"),
        schedule("busy", "schedule: {interval: 1s}\nconcurrencyPolicy: Allow\nmaxRuns: 5", "quick"),
    )
    notes = [f"request.cronwright.dev/r{n}={{}}" for n in range(10)]
    work.until("busy", lambda s: s["phase"] == "Active")
    began = time.monotonic()
    with writes(work, "busy") as seen:
        work.kubectl("annotate", "ts", "busy", *notes)
        status = work.until("busy", lambda s: s["phase"] == "Completed")
    seconds = time.monotonic() - began
    assert (status["runs"], status["succeeded"], status["activeRuns"]) == (15, 15, 0), "the last one tells all"
    asking = 2  # the annotations come, and go
    assert len(seen) <= 1 + asking + seconds + 1, "at most one a second, where fifteen runs would take thirty"
