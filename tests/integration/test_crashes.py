"""SIGKILL at every write of a run: whoever starts next does what is left, and nothing twice.

A single run is killed before and after each of its writes in turn. Where there is more to it (a retry, Replace, Queue,
requests), the operator dies again and again, after its first write, its second, its third: whatever it had begun is
left to the next life, until the whole story is told.
"""

import signal
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.integration.operating import OperatorProcess
from tests.integration.support import eventually
from tests.integration.workspace import (
    HELLO,
    ONE_RUN,
    Json,
    Workspace,
    created,
    environment,
    finished,
    in_seconds,
    moment,
    schedule,
    slot,
    template,
)

WRITES = [
    "create claims 1",  # the schedule's ledger, with its first slot prepared
    "patch taskschedules 1",  # its first status
    "create jobs 1",
    "patch taskschedules 2",
    "replace claims 1",  # the first run enters the ledger, and another slot is prepared
    "create jobs 2",
    "patch taskschedules 3",
]
THREE_RUNS = "schedule: {interval: 2s}\nmaxRuns: 3\nconcurrencyPolicy: Allow"


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_at_any_write_gives_each_slot_exactly_one_job(
    work: Workspace, operator: OperatorProcess, moment: str, write: str
) -> None:
    work.apply(HELLO)
    work.until("hello", lambda s: s.get("conditions"), kind="tt")
    operator.stop()
    try:
        operator.start(fault=f"{moment} {write}")
        work.apply(schedule("slots", THREE_RUNS))
        assert operator.wait() == -signal.SIGKILL
    finally:
        if operator.running:
            operator.kill()
        operator.start()
    status = work.until("slots", lambda s: s["phase"] == "Completed")
    assert (status["runs"], status["succeeded"]) == (3, 3)
    assert [record["phase"] for record in status["recentRuns"]] == ["Succeeded"] * 3
    jobs = work.jobs("slots")
    assert len({slot(job) for job in jobs}) == len(jobs) == 3
    assert once_each(work, jobs)


def test_a_job_that_was_deleted_before_anybody_told_of_it_is_not_run_again(
    work: Workspace, operator: OperatorProcess
) -> None:
    """The operator dies right after the creation; only the API server's own memory shows that there was one."""
    work.apply(HELLO)
    work.until("hello", lambda s: s.get("conditions"), kind="tt")
    operator.stop()
    try:
        operator.start(fault="after create jobs 1")
        work.apply(schedule("lone", f"schedule: {{at: '{in_seconds(4)}'}}"))
        assert operator.wait() == -signal.SIGKILL
        [job] = work.jobs("lone")
        work.kubectl("delete", "job", job["metadata"]["name"])
    finally:
        if operator.running:
            operator.kill()
        operator.start()
    status = work.until("lone", lambda s: s["phase"] == "Completed")
    assert (status["runs"], status["cancelled"], status.get("skipped", 0)) == (1, 1, 0)
    [record] = status["recentRuns"]
    assert (record["name"], record["category"]) == (job["metadata"]["name"], "Cancelled")
    assert work.jobs("lone") == []


def test_slots_that_wait_are_not_lost_with_their_ledger(work: Workspace, operator: OperatorProcess) -> None:
    work.apply(template("slow", run_for="8s"))
    work.apply(schedule("queue", "schedule: {interval: 1s}\nmaxRuns: 4\nconcurrencyPolicy: Queue", template="slow"))
    work.until("queue", lambda s: len(s.get("waiting", ())) == 3)
    operator.kill()
    try:
        [lease] = [n for n in work.kubectl("get", "leases", "-o", "name").split() if "queue-claim" in n]
        work.kubectl("delete", lease)
    finally:
        operator.start()
    status = work.until("queue", lambda s: s["phase"] == "Completed")
    assert (status["runs"], status["succeeded"]) == (4, 4)
    assert len({record["slot"] for record in status["recentRuns"]}) == 4


def few_writes_a_life(
    work: Workspace, operator: OperatorProcess, name: str, manifest: str, check: Callable[[Json], Any], **request: Any
) -> tuple[Json, int]:
    """Apply a schedule (and ask something of it), and let the operator die at its writes until all is as wanted.

    Returns the status, and how many lives it took.
    """
    operator.stop()
    lives = 0
    try:
        work.apply(manifest)
        if request:
            work.ask(name, "ask", **request)
        while not check(work.status(name)):
            operator.start(fault=f"after any write {1 + lives % 3}")
            eventually(lambda: not operator.running or check(work.status(name)))
            if operator.running:
                operator.kill()
            else:
                assert operator.wait() == -signal.SIGKILL
            lives += 1
            assert lives < 60, "it does not get anywhere"
    finally:
        if operator.running:
            operator.kill()
        operator.start()
    return work.until(name, check), lives


def once_each(work: Workspace, jobs: list[Json]) -> bool:
    """No Job of these names existed before: each has made one pod."""
    made = [event for job in jobs for event in work.events(job["metadata"]["name"], "Job")]
    return len([event for event in made if event[1] == "SuccessfulCreate"]) == len(jobs)


def ready(work: Workspace, *templates: str) -> None:
    for name in templates:
        work.until(name, lambda s: s.get("conditions"), kind="tt")


def test_a_retry_survives_a_crash_at_every_write(work: Workspace, operator: OperatorProcess) -> None:
    work.apply(template("broken", "retry: {maxAttempts: 3, initialDelay: 1s}", exit_code="1", run_for="1ms"))
    ready(work, "broken")
    manifest = schedule("retry", ONE_RUN, "broken")
    status, lives = few_writes_a_life(work, operator, "retry", manifest, lambda s: s.get("failed") == 1)
    jobs = work.jobs("retry")
    assert [record["attempt"] for record in status["recentRuns"]] == [3, 2, 1]
    assert (status["runs"], len(jobs)) == (1, 3)
    assert once_each(work, jobs)
    assert lives >= 4, "claim, Job and status, for each of three attempts"


def test_replace_survives_a_crash_at_every_write(work: Workspace, operator: OperatorProcess) -> None:
    work.apply(template("endless", behaviour="Hang"))
    ready(work, "endless")
    manifest = schedule("replace", "schedule: {interval: 3s}\nconcurrencyPolicy: Replace\nmaxRuns: 3", "endless")

    def dropped(status: Json) -> int:
        """Claims that the next slot replaced before they could start: lives are short, and machines slow."""
        return int(status.get("skips", {}).get("Replaced", 0))

    def over(status: Json) -> bool:
        gone = status.get("cancelled", 0) + dropped(status)
        return (gone, status.get("activeRuns"), status.get("queued")) == (2, 1, 0)

    status, lives = few_writes_a_life(work, operator, "replace", manifest, over)
    [job] = work.jobs("replace")
    assert job["metadata"]["name"] == status["recentRuns"][0]["name"]
    runs = 3 - dropped(status)
    assert (status["runs"], status["failed"], status.get("cancelled", 0)) == (runs, 0, runs - 1)
    # One whose Job came and went in lives that ended before a status told of it is counted, and has no record.
    told = [record.get("category") for record in status["recentRuns"]]
    assert told in [[None, *["Cancelled"] * others] for others in range(runs)]
    assert once_each(work, [job])
    assert lives >= 3


def test_queue_survives_a_crash_at_every_write(work: Workspace, operator: OperatorProcess) -> None:
    work.apply(template("slow", run_for="2s"))
    ready(work, "slow")
    manifest = schedule("queue", "schedule: {interval: 1s}\nconcurrencyPolicy: Queue\nmaxRuns: 3", "slow")
    status, _ = few_writes_a_life(work, operator, "queue", manifest, lambda s: s.get("succeeded") == 3)
    jobs = work.jobs("queue")
    assert (status["runs"], len(jobs)) == (3, 3)
    assert sorted(jobs, key=created) == jobs, "in the order of the slots"
    assert all(created(later) >= finished(earlier) for earlier, later in pairwise(jobs)), "one after the other"
    assert once_each(work, jobs)


BACKFILL = {"kind": "Backfill", "from": "2026-01-05T06:00:00Z", "to": "2026-01-07T06:00:00Z"}
DAILY = schedule("daily", "schedule: {cron: '0 6 * * *'}\nsuspend: true")


def test_a_backfill_survives_a_crash_at_every_write(work: Workspace, operator: OperatorProcess) -> None:
    work.apply(HELLO)
    ready(work, "hello")
    status, _ = few_writes_a_life(work, operator, "daily", DAILY, lambda s: s.get("succeeded") == 3, **BACKFILL)
    jobs = work.jobs("daily")
    assert [slot(job) for job in jobs] == [moment(f"2026-01-0{day}T06:00:00Z") for day in (5, 6, 7)]
    assert once_each(work, jobs)
    assert status["runs"] == 3
    assert work.answer("daily", "ask")["state"] == "Done"


def test_run_now_survives_a_crash_at_every_write(work: Workspace, operator: OperatorProcess) -> None:
    work.apply("""
apiVersion: cronwright.dev/v1alpha1
kind: TaskTemplate
metadata: {name: hello}
spec:
  parameters: [{name: who}]
  shell: {script: echo hello}
""")
    ready(work, "hello")
    status, _ = few_writes_a_life(
        work, operator, "daily", DAILY, lambda s: s.get("succeeded") == 1, parameters={"who": "you"}
    )
    [job] = work.jobs("daily")
    assert environment(job)["TASK_PARAM_WHO"] == "you"
    assert once_each(work, [job])
    assert status["runs"] == 1
    assert work.answer("daily", "ask")["state"] == "Done"
