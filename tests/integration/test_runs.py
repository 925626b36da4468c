"""The thin path, as users take it: YAML applied with kubectl becomes Jobs on time, and a status that tells of them."""

import re
import time
from datetime import datetime
from functools import partial

from tests.integration.operating import OperatorProcess
from tests.integration.support import eventually
from tests.integration.workspace import HELLO, ONE_RUN, Workspace, environment, in_seconds, schedule, slot, template


def test_an_interval_runs_at_its_anchor_and_at_each_step_from_it(work: Workspace) -> None:
    work.apply(HELLO, schedule("tick", "schedule: {interval: 2s, anchor: '2026-01-01T00:00:01Z'}"))
    status = work.until("tick", lambda s: s.get("succeeded", 0) >= 2)
    slots = [slot(job) for job in work.jobs("tick")]
    assert all(at % 2 == 1 for at in slots), "anchor + k * interval: odd seconds"
    assert len(slots) == len(set(slots))
    assert status["phase"] == "Active"
    assert status["nextRunTime"] == status["upcoming"][0]
    assert len(status["upcoming"]) == 5
    last = datetime.fromisoformat(status["lastScheduleTime"]).timestamp()
    following = datetime.fromisoformat(status["nextRunTime"]).timestamp()
    assert (following - last) % 2 == 0
    assert work.condition("tick")["status"] == "True"


def test_once_runs_once_and_is_completed(work: Workspace) -> None:
    at = in_seconds(5)
    work.apply(HELLO, schedule("once", f"schedule: {{at: '{at}'}}"))
    waiting = work.until("once", lambda s: "nextRunTime" in s or "lastScheduleTime" in s)
    assert at in (waiting.get("nextRunTime"), waiting.get("lastScheduleTime"))
    status = work.until("once", lambda s: s["phase"] == "Completed")
    assert (status["runs"], status["succeeded"], status["lastScheduleTime"]) == (1, 1, at)
    assert "nextRunTime" not in status
    [record] = status["recentRuns"]
    assert (record["phase"], record["trigger"], record["attempt"], record["slot"]) == ("Succeeded", "Schedule", 1, at)
    [job] = work.jobs("once")
    assert job["metadata"]["name"] == record["name"] == f"once-{slot(job)}-1"


def test_cron_follows_its_time_zone(work: Workspace) -> None:
    work.apply(
        HELLO,
        schedule("seconds", "schedule: {cron: '* * * * * */2'}"),
        schedule("kathmandu", "schedule: {cron: '0 9 1 1 *', timeZone: Asia/Kathmandu}"),
    )
    assert work.until("kathmandu", lambda s: s.get("nextRunTime"))["nextRunTime"].endswith("-01-01T03:15:00Z")
    work.until("seconds", lambda s: s.get("succeeded", 0) >= 1)
    assert all(slot(job) % 2 == 0 for job in work.jobs("seconds"))


def test_at_in_the_past_never_runs(work: Workspace) -> None:
    work.apply(HELLO, schedule("late", "schedule: {at: '2020-01-01T00:00:00Z'}"))
    status = work.until("late", lambda s: s["phase"] == "Completed")
    assert work.condition("late")["reason"] == "AtInPast"
    assert status["runs"] == 0
    assert work.jobs("late") == []


def test_a_job_tells_where_it_comes_from(work: Workspace) -> None:
    work.apply(HELLO, schedule("origin", ONE_RUN))
    work.until("origin", lambda s: s["phase"] == "Completed")
    [job] = work.jobs("origin")
    owner = work.get("ts", "origin")["metadata"]
    [reference] = job["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"], reference["controller"]) == ("TaskSchedule", owner["uid"], True)
    labels = job["metadata"]["labels"]
    assert (labels["cronwright.dev/schedule"], labels["cronwright.dev/template"]) == ("origin", "hello")
    assert labels["app.kubernetes.io/managed-by"] == "cronwright"
    assert job["spec"]["backoffLimit"] == 0
    [lease] = [lease for lease in work.all("leases") if lease["metadata"]["name"].startswith("origin-claim-")]
    assert lease["metadata"]["ownerReferences"][0]["uid"] == owner["uid"]


def test_parameters_and_context_reach_the_container(work: Workspace) -> None:
    work.apply(
        """
apiVersion: cronwright.dev/v1alpha1
kind: TaskTemplate
metadata: {name: greet}
spec:
  parameters:
  - {name: who, required: true}
  - {name: how, default: "$(whoami); $HOME"}
  job:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: main, image: busybox, args: ["$(params.who)"], env: [{name: TO, value: "to $(params.who)"}]}
""",
        schedule("greet", f"parameters: {{who: 'a \"b\" $(c)'}}\n{ONE_RUN}", "greet"),
    )
    work.until("greet", lambda s: s["phase"] == "Completed")
    [job] = work.jobs("greet")
    found = environment(job)
    # $$( is how Kubernetes is told to leave $( alone: what arrives is what was written.
    assert found["TASK_PARAM_WHO"] == 'a "b" $$(c)'
    assert found["TASK_PARAM_HOW"] == "$$(whoami); $HOME"
    assert found["TO"] == 'to a "b" $$(c)'
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ['a "b" $$(c)']
    assert found["TASK_SCHEDULE"] == "greet"
    assert found["TASK_RUN"] == job["metadata"]["name"]
    assert found["TASK_ATTEMPT"] == "1"
    assert datetime.fromisoformat(found["TASK_SCHEDULED_AT"]).timestamp() == slot(job)
    assert found["TASK_PREVIOUS_SUCCESS_AT"] == ""


def test_python_and_shell_templates_become_jobs(work: Workspace) -> None:
    work.apply(
        """
apiVersion: cronwright.dev/v1alpha1
kind: TaskTemplate
metadata: {name: script}
spec:
  python:
    script: print("$(date)")
    pod:
      annotations: {cluster.cronwright.dev/termination-message: "42"}
---
apiVersion: cronwright.dev/v1alpha1
kind: TaskTemplate
metadata: {name: function}
spec:
  parameters: [{name: days, default: "7"}]
  python: {image: shop:1, entrypoint: "shop.tasks:archive"}
""",
        schedule("script", ONE_RUN, "script"),
        schedule("function", ONE_RUN, "function"),
    )
    status = work.until("script", lambda s: s["phase"] == "Completed")
    assert status["recentRuns"][0]["result"] == "42", "what a python task says is its result"
    [job] = work.jobs("script")
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["python3", "-c", 'print("$$(date)")']
    work.until("function", lambda s: s["phase"] == "Completed")
    [job] = work.jobs("function")
    assert environment(job)["TASK_ENTRYPOINT"] == "shop.tasks:archive"
    assert environment(job)["TASK_PARAMETERS"] == '{"days":"7"}'


def test_a_suspended_schedule_does_not_run_and_what_passed_is_not_missed(work: Workspace) -> None:
    work.apply(
        HELLO,
        schedule("pause", "suspend: true\nschedule: {interval: 1s}"),
        schedule("other", "schedule: {interval: 1s}"),
    )
    work.until("pause", lambda s: s["phase"] == "Suspended")
    work.until("other", lambda s: s.get("runs", 0) >= 3)
    assert work.jobs("pause") == []
    work.patch("ts", "pause", {"spec": {"suspend": False}})
    resumed = time.time()
    status = work.until("pause", lambda s: s.get("runs", 0) >= 1)
    assert status["missed"] == 0
    assert min(slot(job) for job in work.jobs("pause")) >= int(resumed) - 1
    assert ("Normal", "Suspended") in [event[:2] for event in work.events("pause")]
    assert ("Normal", "Resumed") in [event[:2] for event in work.events("pause")]


def test_finished_jobs_are_kept_up_to_the_history_limits(work: Workspace) -> None:
    work.apply(
        HELLO,
        template("broken", exit_code="3", run_for="1ms"),
        schedule("good", "schedule: {interval: 1s}\nconcurrencyPolicy: Allow\nhistory: {successful: 2, failed: 1}"),
        schedule("bad", "schedule: {interval: 1s}\nconcurrencyPolicy: Allow\nhistory: {failed: 1}", "broken"),
    )
    work.until("good", lambda s: s.get("succeeded", 0) >= 5)
    work.until("bad", lambda s: s.get("failed", 0) >= 4)
    for name in ("good", "bad"):
        work.patch("ts", name, {"spec": {"suspend": True}})
    for name, kept in (("good", 2), ("bad", 1)):
        status = work.until(name, lambda s: s["phase"] == "Suspended" and not s.get("active"))
        eventually(partial(_has_jobs, work, name, kept))
        assert len(status["recentRuns"]) >= 4, "the records outlive the Jobs"
        newest = [record["name"] for record in status["recentRuns"]][:kept]
        assert sorted(job["metadata"]["name"] for job in work.jobs(name)) == sorted(newest)


def _has_jobs(work: Workspace, name: str, count: int) -> bool:
    return len(work.jobs(name)) == count


def test_deleting_a_schedule_takes_its_jobs_and_its_lease_along(work: Workspace, operator: OperatorProcess) -> None:
    work.apply(
        HELLO,
        template("endless", behaviour="Hang"),
        schedule("gone", ONE_RUN, "endless"),
        schedule("stays", "schedule: {interval: 1h}"),
    )
    work.until("gone", lambda s: s.get("activeRuns") == 1)
    work.until("stays", lambda s: s.get("nextRunTime"))
    work.kubectl("delete", "ts", "gone")
    eventually(lambda: work.all("jobs") == [] and len(work.all("leases")) == 1)
    assert [lease["metadata"]["name"].split("-claim-")[0] for lease in work.all("leases")] == ["stays"]


def test_deleting_a_schedule_works_with_the_operator_gone(work: Workspace, operator: OperatorProcess) -> None:
    work.apply(HELLO, schedule("orphan", ONE_RUN))
    work.until("orphan", lambda s: s["phase"] == "Completed")
    operator.stop()
    try:
        work.kubectl("delete", "ts", "orphan", "--timeout=30s")
        eventually(lambda: work.all("jobs") + work.all("leases") == [])
    finally:
        operator.start()


def test_a_schedule_made_anew_under_the_same_name_adopts_nothing(work: Workspace) -> None:
    manifest = schedule("phoenix", "schedule: {interval: 1s}")
    work.apply(HELLO, manifest)
    work.until("phoenix", lambda s: s.get("runs", 0) >= 2)
    work.kubectl("delete", "ts", "phoenix", "--cascade=orphan")
    work.apply(manifest)
    status = work.until("phoenix", lambda s: s.get("runs", 0) >= 1)
    uid = work.get("ts", "phoenix")["metadata"]["uid"]
    owners = {job["metadata"]["name"]: job["metadata"].get("ownerReferences", []) for job in work.jobs("phoenix")}
    assert [] in owners.values(), "the Jobs of the first one are still there"
    assert all([ref["uid"] for ref in owners[record["name"]]] == [uid] for record in status["recentRuns"])


def test_the_operator_never_writes_a_spec(work: Workspace) -> None:
    work.apply(HELLO, schedule("gitops", "schedule: {interval: 1s}"))
    before = work.get("ts", "gitops")
    work.until("gitops", lambda s: s.get("succeeded", 0) >= 2)
    after = work.get("ts", "gitops")
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == 1
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert "finalizers" not in after["metadata"]


def test_a_very_long_name_still_makes_jobs(work: Workspace) -> None:
    name = "a-name-of-" + "x" * 220
    work.apply(HELLO, schedule(name, ONE_RUN))
    work.until(name, lambda s: s["phase"] == "Completed")
    [job] = [job for job in work.all("jobs") if job["metadata"]["ownerReferences"][0]["name"] == name]
    assert len(job["metadata"]["name"]) <= 63
    assert re.fullmatch(r"a-name-of-x+-[0-9a-f]{8}-\d+-1", job["metadata"]["name"])


def test_metrics_count_what_happened(work: Workspace, operator: OperatorProcess) -> None:
    before = operator.metric("cronwright_runs_started_total")
    work.apply(HELLO, schedule("counted", ONE_RUN))
    work.until("counted", lambda s: s["phase"] == "Completed")
    assert operator.metric("cronwright_runs_started_total") > before
    assert operator.metric("cronwright_schedules") >= 1
    assert operator.ask("/healthz")[0] == 200
    assert "shards held: 0" in operator.ask("/readyz")[1]
