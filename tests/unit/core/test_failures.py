"""The table from a failed Job and its pods to a category, and how long to wait before another attempt."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.views import at, claim, run

from cronwright.api.retrying import FailureRule, Retry
from cronwright.core.failures import (
    MESSAGE_LIMIT,
    RESULT_LIMIT,
    all_pending,
    classify,
    delay_before,
    glimpse,
    hopeless,
    why_pending,
)
from cronwright.core.model import Json, Outcome, Run


def job(reason: str = "BackoffLimitExceeded", message: str = "", **fields: Any) -> Run:
    return run(claim(0), phase="Failed", finished=1, reason=reason, message=message, **fields)


def pod(*containers: Json, init: tuple[Json, ...] = (), deleted: bool = False, age: int = 0, **status: Any) -> Json:
    meta = {"name": "p", "creationTimestamp": at(-age)} | ({"deletionTimestamp": at(0)} if deleted else {})
    found = {"containerStatuses": list(containers), "initContainerStatuses": list(init), **status}
    return {"metadata": meta, "status": found}


def exited(code: int, reason: str = "Error", message: str = "") -> Json:
    return {"state": {"terminated": {"exitCode": code, "reason": reason, "message": message}}}


def waiting(reason: str, message: str = "") -> Json:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def disrupted(reason: str) -> list[Json]:
    return [{"type": "DisruptionTarget", "status": "True", "reason": reason}]


CATEGORIES: dict[str, tuple[Run, list[Json], str]] = {
    # What the Job says.
    "its deadline passed": (job("DeadlineExceeded"), [], "Timeout"),
    "its deadline passed, whatever the code": (job("DeadlineExceeded"), [pod(exited(143), deleted=True)], "Timeout"),
    "pendingTimeout": (job("PendingTimeout"), [], "Timeout"),
    "cancelled by a request": (job("Cancelled"), [pod(exited(143), deleted=True)], "Cancelled"),
    "replaced": (job("Replaced"), [], "Cancelled"),
    "a pod that the API server refuses": (job("PodRefused"), [], "Permanent"),
    "a Job that the API server refuses": (job("JobRefused"), [], "Permanent"),
    "a name that is taken": (job("NameTaken"), [], "Permanent"),
    "a quota": (job("QuotaExceeded"), [], "Transient"),
    "nothing is known": (job(), [], "Transient"),
    # What happened to the pod.
    "evicted": (job(), [pod(exited(137), reason="Evicted")], "Transient"),
    "evicted with a permanent code": (job(), [pod(exited(64), reason="Evicted")], "Transient"),
    "preempted": (job(), [pod(exited(143), conditions=disrupted("PreemptionByScheduler"), deleted=True)], "Transient"),
    "drained": (job(), [pod(exited(143), conditions=disrupted("EvictionByEvictionAPI"), deleted=True)], "Transient"),
    "node lost": (job(), [pod(reason="NodeLost")], "Transient"),
    "node gone": (job(), [pod(exited(137), conditions=disrupted("DeletionByPodGC"))], "Transient"),
    "tainted": (job(), [pod(conditions=disrupted("DeletionByTaintManager"))], "Transient"),
    "node shut down": (job(), [pod(reason="Terminated", conditions=disrupted("TerminationByKubelet"))], "Transient"),
    "image-pull back-off": (job(), [pod(waiting("ImagePullBackOff"))], "Transient"),
    "image pull failed": (job(), [pod(waiting("ErrImagePull"))], "Transient"),
    "image never pulled": (job("ErrImageNeverPull"), [pod(waiting("ErrImageNeverPull"))], "Permanent"),
    "image name": (job(), [pod(waiting("InvalidImageName"))], "Permanent"),
    "a Secret is missing": (job(), [pod(waiting("CreateContainerConfigError"))], "Permanent"),
    "out of memory": (job(), [pod(exited(137, "OOMKilled"))], "Transient"),
    # Deleted by a person.
    "143 after a deletion": (job(), [pod(exited(143), deleted=True)], "Cancelled"),
    "143 without one": (job(), [pod(exited(143))], "Transient"),
    "another code after a deletion": (job(), [pod(exited(3), deleted=True)], "Transient"),
    "its pod was seen leaving": (job(glimpsed="Deleted"), [], "Cancelled"),
    "its pod was seen leaving for another": (job(glimpsed="PreemptionByScheduler"), [], "Transient"),
    "its first pod left, the next one failed": (job(glimpsed="Deleted"), [pod(exited(78))], "Permanent"),
    # Exit codes.
    **{f"exit code {code}": (job(), [pod(exited(code))], "Permanent") for code in (64, 65, 77, 78, 126, 127)},
    **{f"exit code {code}": (job(), [pod(exited(code))], "Transient") for code in (1, 2, 75, 137, 255)},
    # Which container and which pod.
    "the container that failed": (job(), [pod(exited(0, "Completed"), exited(78))], "Permanent"),
    "a sidecar that was stopped after it": (
        job(),
        [pod(exited(78), init=(exited(0, "Completed"),))],
        "Permanent",
    ),
    "an init container": (job(), [pod(waiting("PodInitializing"), init=(exited(78),))], "Permanent"),
    "the latest pod": (job(), [pod(exited(78), age=1), pod(exited(1), age=5)], "Permanent"),
    "the time before, when restarted": (
        job(),
        [pod({"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 78}}})],
        "Permanent",
    ),
}


@pytest.mark.parametrize(("failed", "pods", "category"), CATEGORIES.values(), ids=CATEGORIES)
def test_the_built_in_table(failed: Run, pods: list[Json], category: str) -> None:
    assert classify(failed, pods, ()).category == category


def rule(category: str, **what: Any) -> FailureRule:
    return FailureRule.model_validate({"category": category, **what})


RULES: dict[str, tuple[list[FailureRule], Run, list[Json], str]] = {
    "by exit code": ([rule("Permanent", exitCodes=[3, 4])], job(), [pod(exited(4))], "Permanent"),
    "not by another": ([rule("Permanent", exitCodes=[3, 4])], job(), [pod(exited(5))], "Transient"),
    "before sysexits": ([rule("Transient", exitCodes=[64])], job(), [pod(exited(64))], "Transient"),
    "by reason of the Job": (
        [rule("Permanent", reasons=["DeadlineExceeded"])],
        job("DeadlineExceeded"),
        [],
        "Permanent",
    ),
    "by reason of the pod": (
        [rule("Permanent", reasons=["OOMKilled"])],
        job(),
        [pod(exited(137, "OOMKilled"))],
        "Permanent",
    ),
    "by a reason nobody knows": ([rule("Timeout", reasons=["Odd"])], job(), [pod(reason="Odd")], "Timeout"),
    "the first that fits": (
        [rule("Timeout", exitCodes=[9]), rule("Cancelled", exitCodes=[3]), rule("Permanent", exitCodes=[3])],
        job(),
        [pod(exited(3))],
        "Cancelled",
    ),
}


@pytest.mark.parametrize(("rules", "failed", "pods", "category"), RULES.values(), ids=RULES)
def test_failure_rules_come_first(rules: list[FailureRule], failed: Run, pods: list[Json], category: str) -> None:
    assert classify(failed, pods, rules).category == category


LIMIT = "Job has reached the specified backoff limit"
MESSAGES: dict[str, tuple[Run, list[Json], str]] = {
    "what the task said": (job(message=LIMIT), [pod(exited(3, message="disk full"))], "disk full"),
    "nothing but a code": (job(message=LIMIT), [pod(exited(3))], ""),
    "no pod, no code": (job(message=LIMIT), [], LIMIT),
    "why we ended it": (job("PendingTimeout", "No pod."), [pod(waiting("ImagePullBackOff", "Back-off"))], "No pod."),
    "its deadline": (job("DeadlineExceeded", "active too long"), [pod(exited(143))], "active too long"),
    "out of memory": (
        job(message=LIMIT),
        [pod(exited(137, "OOMKilled"))],
        "It used more memory than its limit (OOMKilled).",
    ),
    "evicted": (job(message=LIMIT), [pod(exited(137), reason="Evicted", message="low on memory")], "low on memory"),
    "its pod was deleted": (job(message=LIMIT, glimpsed="Deleted"), [], "Its pod was deleted."),
    "too much of it": (job(), [pod(exited(3, message="x" * 9999))], "x" * MESSAGE_LIMIT),
}


@pytest.mark.parametrize(("failed", "pods", "message"), MESSAGES.values(), ids=MESSAGES)
def test_the_message_says_what_a_person_wants_to_know(failed: Run, pods: list[Json], message: str) -> None:
    assert classify(failed, pods, ()).message == message


def test_the_exit_code_is_kept() -> None:
    assert classify(job(), [pod(exited(42))], ()) == Outcome("Transient", 42, "")


def test_the_result_of_a_success_is_its_termination_message_and_bounded() -> None:
    good = run(claim(0), phase="Succeeded", finished=1)
    assert classify(good, [pod(exited(0, "Completed", "42 rows"))], ()) == Outcome(None, 0, "", "42 rows")
    assert classify(good, [pod(exited(0, "Completed", "x" * 9999))], ()).result == "x" * RESULT_LIMIT


# Delays


DELAYS = {
    "Exponential": ({}, [60, 120, 240, 480]),
    "Linear": ({"backoff": "Linear"}, [60, 120, 180, 240]),
    "None": ({"backoff": "None"}, [60, 60, 60, 60]),
    "a delay of its own": ({"initialDelay": "5s"}, [5, 10, 20, 40]),
    "no delay": ({"initialDelay": "0s"}, [0, 0, 0, 0]),
    "capped": ({"maxDelay": "100s"}, [60, 100, 100, 100]),
    "capped from the start": ({"maxDelay": "10s", "backoff": "None"}, [10, 10, 10, 10]),
}


@pytest.mark.parametrize(("policy", "delays"), DELAYS.values(), ids=DELAYS)
def test_delays(policy: dict[str, str], delays: list[int]) -> None:
    retry = Retry.model_validate(policy)
    assert [delay_before(attempt, retry) for attempt in (2, 3, 4, 5)] == delays


# Runs that do not come to run


def refusal(message: str) -> Json:
    return {"reason": "FailedCreate", "message": message}


HOPELESS: dict[str, tuple[list[Json], list[Json], str | None]] = {
    "no pod, no word": ([], [], None),
    "an image that is never pulled": ([pod(waiting("ErrImageNeverPull"))], [], "ErrImageNeverPull"),
    "no image name": ([pod(waiting("InvalidImageName"))], [], "InvalidImageName"),
    "an image that may come": ([pod(waiting("ImagePullBackOff"))], [], None),
    "being created": ([pod(waiting("ContainerCreating"))], [], None),
    "a missing ServiceAccount": (
        [],
        [refusal('Error creating: pods "x-" is forbidden: error looking up service account ns/x: not found')],
        "PodRefused",
    ),
    "Pod Security": (
        [],
        [refusal('Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest"')],
        "PodRefused",
    ),
    "an invalid pod": ([], [refusal('Error creating: Pod "x" is invalid: spec.containers: …')], "PodRefused"),
    "a quota may be freed": ([], [refusal('Error creating: pods "x" is forbidden: exceeded quota: small')], None),
    "an API server in trouble": ([], [refusal("Error creating: Internal error occurred: etcd timeout")], None),
}


@pytest.mark.parametrize(("pods", "events", "reason"), HOPELESS.values(), ids=HOPELESS)
def test_which_runs_can_never_start(pods: list[Json], events: list[Json], reason: str | None) -> None:
    found = hopeless(pods, events)
    assert (found[0] if found else None) == reason


def test_a_refusal_is_told_in_the_api_servers_own_words() -> None:
    found = hopeless([], [refusal('Error creating: pods "x" is forbidden: no')])
    assert found == ("PodRefused", 'pods "x" is forbidden: no')


PENDING: dict[str, tuple[list[Json], tuple[str, str]]] = {
    "no pod": ([], ("PendingTimeout", "No pod was running within pendingTimeout.")),
    "an image": (
        [pod(waiting("ImagePullBackOff", 'Back-off pulling image "x"'))],
        ("PendingTimeout", 'No pod was running within pendingTimeout: ImagePullBackOff. Back-off pulling image "x"'),
    ),
    "no node": (
        [pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available."}])],
        ("PendingTimeout", "No pod was running within pendingTimeout: 0/1 nodes are available."),
    ),
    "a Secret": (
        [pod(waiting("CreateContainerConfigError", 'secret "x" not found'))],
        (
            "CreateContainerConfigError",
            'No pod was running within pendingTimeout: CreateContainerConfigError. secret "x" not found',
        ),
    ),
}


@pytest.mark.parametrize(("pods", "expected"), PENDING.values(), ids=PENDING)
def test_why_a_run_was_pending(pods: list[Json], expected: tuple[str, str]) -> None:
    assert why_pending(pods) == expected


@pytest.mark.parametrize(
    ("phases", "expected"), [([], True), (["Pending"], True), (["Pending", "Running"], False), (["Failed"], False)]
)
def test_what_counts_as_pending(phases: list[str], expected: bool) -> None:
    assert all_pending(pod(phase=phase) for phase in phases) is expected


def test_a_glimpse_of_a_pod_that_leaves() -> None:
    assert glimpse([pod()]) == ""
    assert glimpse([pod(deleted=True)]) == "Deleted"
    assert glimpse([pod(deleted=True, conditions=disrupted("PreemptionByScheduler"))]) == "PreemptionByScheduler"
