"""Overlap on a real API server: whether a slot runs beside, instead of, or after the runs that are not over.

Slots are a second apart, so on a slow machine two may be due at one look, and catch-up takes the latest: what is
expected here holds then too.
"""

import json
from itertools import pairwise

from tests.integration.support import eventually
from tests.integration.workspace import (
    ONE_RUN,
    Json,
    Workspace,
    created,
    finished,
    moment,
    schedule,
    slot,
    template,
)

SLOW = template("slow", run_for="2500ms")
ENDLESS = template("endless", behaviour="Hang")


def in_sequence(jobs: list[Json]) -> bool:
    """Each Job was created when the one before it was over."""
    ordered = sorted(jobs, key=created)
    return all(created(later) >= finished(earlier) for earlier, later in pairwise(ordered))


def test_allow_runs_beside_and_forbid_skips_what_would_overlap(work: Workspace) -> None:
    work.apply(
        SLOW,
        schedule("allow", "schedule: {interval: 1s}\nconcurrencyPolicy: Allow\nmaxRuns: 4", "slow"),
        schedule("forbid", "schedule: {interval: 1s}\nmaxRuns: 2", "slow"),
    )
    work.until("allow", lambda s: s.get("activeRuns", 0) >= 2)
    status = work.until("allow", lambda s: s["phase"] == "Completed")
    assert (status["runs"], status["succeeded"]) == (4, 4)
    assert "Forbidden" not in status.get("skips", {})

    status = work.until("forbid", lambda s: s["phase"] == "Completed")
    first, second = work.jobs("forbid")
    assert in_sequence([first, second])
    assert status["skips"]["Forbidden"] >= 1
    assert status["skipped"] >= slot(second) - slot(first) - 1, "each slot in between, and a skipped slot never starts"
    told = [event[2] for event in work.events("forbid") if event[1] == "Forbidden"]
    assert told[0].endswith(f"did not run. The run of {status['recentRuns'][1]['slot']} is not over.")


def test_replace_starts_the_new_run_when_the_old_ones_pods_are_gone(work: Workspace) -> None:
    work.apply(
        template("stubborn", behaviour="Hang", stop_after="3s"),
        schedule("replace", "schedule: {interval: 4s}\nconcurrencyPolicy: Replace\nmaxRuns: 2", "stubborn"),
    )
    old = work.until("replace", lambda s: s.get("activeRuns") == 1)["active"][0]["name"]
    waiting = work.until("replace", lambda s: s["queued"] == 1)
    assert [run["name"] for run in waiting["active"]] == [old], "still there, on its way out"

    # The Jobs are listed before the pods: had the new Job been created any earlier, the old pod would be seen here.
    [new] = eventually(lambda: [job for job in work.jobs("replace") if job["metadata"]["name"] != old])
    pods = work.all("pods", "-l", f"batch.kubernetes.io/job-name={old}")
    assert pods == []
    status = work.until("replace", lambda s: s["queued"] == 0 and s["activeRuns"] == 1)
    assert status["active"][0]["name"] == new["metadata"]["name"]
    assert (status["runs"], status["cancelled"], status["failed"]) == (2, 1, 0)
    replaced = status["recentRuns"][1]
    assert (replaced["category"], replaced["message"]) == ("Cancelled", "Replaced by a newer run.")
    eventually(
        lambda: ("Normal", "RunCancelled", f"{old} was ended. Replaced by a newer run.") in work.events("replace")
    )


def test_queue_runs_in_the_order_of_the_slots_as_many_as_fit(work: Workspace) -> None:
    work.apply(
        SLOW,
        schedule("queue", "schedule: {interval: 1s}\nconcurrencyPolicy: Queue\nqueueLimit: 1\nmaxRuns: 3", "slow"),
    )
    work.until("queue", lambda s: s["queued"] == 1 and s["activeRuns"] == 1)
    status = work.until("queue", lambda s: s["phase"] == "Completed")
    jobs = work.jobs("queue")
    assert [slot(job) for job in sorted(jobs, key=created)] == sorted(slot(job) for job in jobs)
    assert in_sequence(jobs)
    assert (status["runs"], status["succeeded"]) == (3, 3)
    assert status["skips"]["QueueFull"] >= 1
    told = [event[2] for event in work.events("queue") if event[1] == "QueueFull"]
    assert told[0].endswith("did not run. 1 run is waiting already (spec.queueLimit).")


def test_a_template_limits_the_runs_of_all_its_schedules(work: Workspace) -> None:
    names = ["one", "two", "three"]
    work.apply(
        template("narrow", "maxConcurrentRuns: 1", run_for="1s"), *(schedule(name, ONE_RUN, "narrow") for name in names)
    )
    for name in names:
        status = work.until(name, lambda s: s["phase"] == "Completed")
        assert (status["runs"], status["succeeded"]) == (1, 1), "they waited, and none was lost"
    assert in_sequence(work.all("jobs"))


def test_a_run_that_never_comes_to_run_is_ended_and_does_not_block_for_ever(work: Workspace) -> None:
    limit = "pendingTimeout: 2s"
    work.apply(
        template("pending", limit, behaviour="Pending"),
        template("image", limit, behaviour="ImagePullBackOff"),
        template("node", limit, overlay="nodeSelector: {disk: none}"),
        schedule("pending", "schedule: {interval: 1s}\nmaxRuns: 2", "pending"),
        schedule("image", ONE_RUN, "image"),
        schedule("node", ONE_RUN, "node"),
    )
    messages = {}
    for name in ("pending", "image", "node"):
        status = work.until(name, lambda s: s["phase"] == "Completed")
        assert {run["category"] for run in status["recentRuns"]} == {"Timeout"}, json.dumps(status["recentRuns"])
        messages[name] = status["recentRuns"][0]["message"]
    assert work.status("pending")["failed"] == 2, "under Forbid, and yet the second one came to its turn"
    assert messages["pending"] == "No pod was running within pendingTimeout."
    assert messages["image"].startswith("No pod was running within pendingTimeout: ImagePullBackOff. Back-off pulling")
    assert messages["node"].startswith("No pod was running within pendingTimeout: 0/1 nodes are available")


def test_a_job_that_a_queueing_system_suspends_is_active_and_pending(work: Workspace) -> None:
    work.apply(
        """
apiVersion: cronwright.dev/v1alpha1
kind: TaskTemplate
metadata: {name: queued}
spec:
  pendingTimeout: 1s
  job:
    spec:
      suspend: true
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: busybox}]
""",
        schedule("kueue", "schedule: {interval: 1s}\nmaxRuns: 1", "queued"),
        schedule("forbid", "schedule: {interval: 1s}", "queued"),
    )
    status = work.until("forbid", lambda s: s.get("skips", {}).get("Forbidden", 0) >= 3)
    [run] = status["recentRuns"]
    assert (run["phase"], status["activeRuns"], status["failed"]) == ("Pending", 1, 0), "past its pendingTimeout"
    assert "startedAt" not in run

    [job] = work.jobs("kueue")
    work.patch("job", job["metadata"]["name"], {"spec": {"suspend": False}})
    status = work.until("kueue", lambda s: s["phase"] == "Completed")
    [run] = status["recentRuns"]
    assert run["phase"] == "Succeeded"
    assert moment(run["startedAt"]) > created(job)
