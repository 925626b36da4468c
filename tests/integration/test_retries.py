"""Retries on a real API server: one Job an attempt, by the category of the failure."""

from itertools import pairwise

from tests.integration.operating import OperatorProcess
from tests.integration.support import eventually
from tests.integration.workspace import (
    ONE_RUN,
    Json,
    Workspace,
    attempt,
    created,
    environment,
    finished,
    schedule,
    template,
)

TWICE = "retry: {maxAttempts: 2, initialDelay: 1s}"


def test_a_failure_is_tried_again_by_its_category(work: Workspace) -> None:
    # name: (the template, the schedule's own policy, category, attempts, exit code)
    rows: dict[str, tuple[str, str, str, int, int | None]] = {
        "code-1": (template("code-1", TWICE, exit_code="1"), "", "Transient", 2, 1),
        "code-64": (template("code-64", TWICE, exit_code="64"), "", "Permanent", 1, 64),
        "code-75": (template("code-75", TWICE, exit_code="75"), "", "Transient", 2, 75),
        "oom": (template("oom", TWICE, behaviour="OOMKilled"), "", "Transient", 2, 137),
        "evicted": (template("evicted", TWICE, behaviour="Evicted"), "", "Transient", 2, 137),
        "deadline": (template("deadline", f"timeout: 1s\n{TWICE}", behaviour="Hang"), "", "Timeout", 2, None),
        "rule": (
            template("rule", TWICE, exit_code="1"),
            "failureRules: [{exitCodes: [1], category: Permanent}]",
            "Permanent",
            1,
            1,
        ),
        "chosen": (
            template("chosen", TWICE, exit_code="64"),
            "retry: {maxAttempts: 2, initialDelay: 0s, retryOn: [Permanent]}",
            "Permanent",
            2,
            64,
        ),
        "without": (template("without", exit_code="1"), "", "Transient", 1, 1),
    }
    work.apply(*(row[0] for row in rows.values()))
    work.apply(*(schedule(name, f"{ONE_RUN}\n{row[1]}", name) for name, row in rows.items()))
    for name, (_, _, category, attempts, code) in rows.items():
        status = work.until(name, lambda s: s["phase"] == "Completed")
        records = status["recentRuns"]
        assert [(run["attempt"], run["category"]) for run in records] == [
            (number, category) for number in range(attempts, 0, -1)
        ], name
        assert records[0].get("exitCode") == code, name
        assert (status["runs"], status["failed"], status["consecutiveFailures"]) == (1, 1, 1), name
        assert len(work.jobs(name)) == attempts, "one Job an attempt"
    assert work.status("oom")["recentRuns"][0]["message"] == "It used more memory than its limit (OOMKilled)."
    assert work.status("evicted")["recentRuns"][0]["message"].startswith("The node was low on resource: memory.")


def test_the_delay_grows_and_is_counted_from_the_end_of_the_attempt_before(work: Workspace) -> None:
    work.apply(
        template("broken", exit_code="1", run_for="1ms", termination_message="disk full"),
        schedule("linear", f"{ONE_RUN}\nretry: {{backoff: Linear, initialDelay: 1s}}", "broken"),
        schedule("capped", f"{ONE_RUN}\nretry: {{initialDelay: 2s, maxDelay: 2s}}", "broken"),
    )
    for name, delays in (("linear", [1, 2]), ("capped", [2, 2])):
        status = work.until(name, lambda s: s["phase"] == "Completed")
        jobs = work.jobs(name)
        waited = [created(after) - finished(before) for before, after in pairwise(jobs)]
        assert len(waited) == 2
        assert all(seconds >= delay for seconds, delay in zip(waited, delays, strict=True)), waited
        assert status["recentRuns"][0]["message"] == "disk full"
    told = [event[2] for event in work.events("linear") if event[1] == "RunFailed"]
    assert len(told) == 3
    assert " failed (Transient, exit code 1). disk full. Attempt 2 starts at " in told[0]
    assert told[2].endswith(" failed (Transient, exit code 1). disk full.")


def greeting(name: str) -> str:
    policy = "parameters: [{name: who, default: world}]\nretry: {initialDelay: 6s, maxAttempts: 2}"
    return template(name, policy, exit_code="1")


def test_a_pending_retry_survives_a_restart_and_uses_what_the_run_started_with(
    work: Workspace, operator: OperatorProcess
) -> None:
    names = ("edited", "deleted")
    work.apply(*map(greeting, names), *(schedule(name, f"{ONE_RUN}\nparameters: {{who: you}}", name) for name in names))
    waiting = {name: work.until(name, lambda s: s.get("retrying"))["retrying"][0] for name in names}
    assert [(entry["attempt"], entry["category"]) for entry in waiting.values()] == [(2, "Transient")] * 2
    operator.kill()
    work.apply(greeting("edited").replace("echo edited", "echo changed").replace("maxAttempts: 2", "maxAttempts: 1"))
    work.patch("ts", "edited", {"spec": {"parameters": {"who": "nobody"}}})
    work.kubectl("delete", "tt", "deleted")
    operator.start()
    for name in names:
        status = work.until(name, lambda s: s["failed"] == 1)
        first, second = work.jobs(name)
        assert second["metadata"]["name"] == waiting[name]["name"] == status["recentRuns"][0]["name"]
        assert (attempt(second), environment(second)["TASK_ATTEMPT"]) == (2, "2")
        assert created(second) >= finished(first) + 6
        assert environment(second)["TASK_PARAM_WHO"] == "you"
        assert command(second) == command(first)
        assert status["runs"] == 1


def command(job: Json) -> list[str]:
    found: list[str] = job["spec"]["template"]["spec"]["containers"][0]["command"]
    return found


def test_what_can_never_start_is_permanent(work: Workspace) -> None:
    """A missing ServiceAccount, a pod that Pod Security refuses, an image that may not be pulled."""
    restricted = """
    podSecurityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    """
    work.cluster.kubectl("label", "namespace", work.namespace, "pod-security.kubernetes.io/enforce=restricted")
    names = ("account", "security", "image")
    work.apply(
        template("account", TWICE, overlay="serviceAccountName: nobody"),
        template("security", TWICE),
        template("image", TWICE, overlay=restricted, behaviour="ErrImageNeverPull"),
        *(schedule(name, ONE_RUN, name) for name in names),
    )
    messages = {}
    for name in names:
        status = work.until(name, lambda s: s["phase"] == "Completed")
        [record] = status["recentRuns"]
        assert record["category"] == "Permanent", "and so it is not tried again"
        messages[name] = record["message"]
    assert 'serviceaccount "nobody" not found' in messages["account"]
    assert 'violates PodSecurity "restricted:latest"' in messages["security"]
    assert messages["image"] == 'Container image "busybox:1.37" is not present with pull policy of Never'
    reasons = {name: work.jobs(name)[0]["metadata"]["annotations"]["cronwright.dev/ended"] for name in names}
    assert reasons == {"account": "PodRefused", "security": "PodRefused", "image": "ErrImageNeverPull"}


def test_a_quota_that_is_used_up_now_is_worth_another_attempt(work: Workspace) -> None:
    work.kubectl("create", "quota", "none", "--hard=count/jobs.batch=0")
    eventually(lambda: work.get("quota", "none").get("status", {}).get("hard"))
    work.apply(template("patient", "retry: {initialDelay: 3s}"), schedule("patient", ONE_RUN, "patient"))
    status = work.until("patient", lambda s: s.get("retrying"))
    [refused] = status["recentRuns"]
    assert (refused["phase"], refused["category"]) == ("Failed", "Transient")
    assert "exceeded quota: none" in refused["message"]
    assert work.jobs("patient") == []
    work.kubectl("delete", "quota", "none")
    status = work.until("patient", lambda s: s["phase"] == "Completed")
    assert (status["runs"], status["succeeded"], status["failed"]) == (1, 1, 0)
    [job] = work.jobs("patient")
    name = job["metadata"]["name"]
    eventually(
        lambda: ("Normal", "RunSucceeded", f"{name} succeeded at attempt {attempt(job)}.") in work.events("patient")
    )


def test_what_a_person_deletes_is_cancelled_and_not_tried_again(work: Workspace) -> None:
    work.apply(
        template("endless", TWICE, behaviour="Hang", stop_after="2s"),
        schedule("job", ONE_RUN, "endless"),
        schedule("pod", ONE_RUN, "endless"),
    )
    names = {name: work.until(name, lambda s: s.get("active"))["active"][0]["name"] for name in ("job", "pod")}
    selector = f"batch.kubernetes.io/job-name={names['pod']}"
    eventually(lambda: [p for p in work.all("pods", "-l", selector) if p["status"]["phase"] == "Running"])
    work.kubectl("delete", "job", names["job"], "--wait=false")
    work.kubectl("delete", "pod", "-l", selector, "--wait=false")
    for name, message in (("job", "Its Job was deleted before it finished."), ("pod", "Its pod was deleted.")):
        status = work.until(name, lambda s: s["phase"] == "Completed")
        [record] = status["recentRuns"]
        assert (record["category"], record["message"]) == ("Cancelled", message)
        assert (status["cancelled"], status["failed"], status.get("retrying", [])) == (1, 0, [])
