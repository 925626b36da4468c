"""Why an attempt failed, and whether it is worth another one.

The categories are a promise to users (`retryOn`, `failureRules`), so the table is one function over plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from cronwright.api.retrying import Backoff, FailureRule, Retry
from cronwright.core.model import Category, Json, Outcome, Run

MESSAGE_LIMIT = 512
RESULT_LIMIT = 2048

_BY_REASON: dict[str, Category] = {
    "DeadlineExceeded": "Timeout",
    "PendingTimeout": "Timeout",
    "Cancelled": "Cancelled",
    "Replaced": "Cancelled",
    "Deleted": "Cancelled",
    "Evicted": "Transient",
    "Preempting": "Transient",
    "PreemptionByScheduler": "Transient",
    "EvictionByEvictionAPI": "Transient",
    "DeletionByPodGC": "Transient",
    "NodeLost": "Transient",
    "NodeShutdown": "Transient",
    "Terminated": "Transient",
    "DeletionByTaintManager": "Transient",
    "TerminationByKubelet": "Transient",
    "OOMKilled": "Transient",
    "ImagePullBackOff": "Transient",
    "ErrImagePull": "Transient",
    "ErrImageNeverPull": "Permanent",
    "InvalidImageName": "Permanent",
    "CreateContainerConfigError": "Permanent",
    "JobRefused": "Permanent",
    "NameTaken": "Permanent",
    "PodRefused": "Permanent",
    "QuotaExceeded": "Transient",
}
_TERMINATED = 143  # 128 + SIGTERM: what a deletion sends
_BY_EXIT_CODE: dict[int, Category] = {
    75: "Transient",
    **dict.fromkeys((64, 65, 77, 78, 126, 127), "Permanent"),
}


def classify(run: Run, pods: Iterable[Json], rules: Sequence[FailureRule]) -> Outcome:
    """The outcome of a finished (or deleted) attempt, from its Job and what is left of its pods."""
    pods = list(pods)
    exit_code, reasons, message = _evidence(pods)
    if not pods and run.glimpsed:
        reasons = [run.glimpsed]
    if run.phase == "Succeeded":
        return Outcome(None, 0, "", message[:RESULT_LIMIT])
    reasons = [reason for reason in (run.reason, *reasons) if reason]
    text = _why(run, exit_code, reasons, message)[:MESSAGE_LIMIT]
    return Outcome(_category(exit_code, reasons, rules), exit_code, text)


def _why(run: Run, exit_code: int | None, reasons: Sequence[str], message: str) -> str:
    """What a person wants to read: why the Job was ended, or else what the task said, or else what happened to it."""
    known = next((reason for reason in reasons if reason in _BY_REASON), None)
    if run.reason == known and run.message:
        return run.message
    if message or known is not None:
        return message or _SAID.get(known or "", f"{known}.")
    # "Job has reached the specified backoff limit" says less than the exit code does.
    return "" if exit_code is not None and run.reason == "BackoffLimitExceeded" else run.message


_SAID = {"Deleted": "Its pod was deleted.", "OOMKilled": "It used more memory than its limit (OOMKilled)."}


def _category(exit_code: int | None, reasons: Sequence[str], rules: Sequence[FailureRule]) -> Category:
    for rule in rules:
        if exit_code in rule.exit_codes or any(reason in rule.reasons for reason in reasons):
            return rule.category.value
    for reason in reasons:
        if reason in _BY_REASON:
            return _BY_REASON[reason]
    return _BY_EXIT_CODE.get(exit_code or 0, "Transient")


def _evidence(pods: Iterable[Json]) -> tuple[int | None, list[str], str]:
    """Exit code, reasons and termination message of the pod that ended last."""
    exit_code: int | None = None
    reasons: list[str] = []
    message = ""
    ordered = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))
    for pod in ordered[-1:]:
        status = pod.get("status") or {}
        reasons += [status["reason"]] if status.get("reason") else []
        message = status.get("message", "")
        reasons += _disruptions(pod)
        deleted = "deletionTimestamp" in pod["metadata"] and not reasons
        for container in [
            *(status.get("initContainerStatuses") or ()),
            *(status.get("containerStatuses") or ()),
        ]:
            state = container.get("state") or {}
            ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated")
            waiting = state.get("waiting")
            if waiting and waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
                reasons.append(waiting["reason"])
                message = message or waiting.get("message", "")
            if ended and (exit_code is None or ended.get("exitCode")):
                exit_code = ended.get("exitCode")
                reasons += [ended["reason"]] if ended.get("reason") else []
                reasons += ["Deleted"] if deleted and exit_code == _TERMINATED else []
                message = ended.get("message") or message
    return exit_code, reasons, message


def glimpse(pods: Iterable[Json]) -> str:
    """Why a pod is being deleted, as long as it can be seen; empty when none is."""
    for pod in pods:
        if "deletionTimestamp" in pod["metadata"]:
            return next(iter(_disruptions(pod)), "Deleted")
    return ""


def _disruptions(pod: Json) -> list[str]:
    """Why Kubernetes itself, and not a person, takes a pod away."""
    return [
        c["reason"]
        for c in (pod.get("status") or {}).get("conditions") or ()
        if c.get("type") == "DisruptionTarget" and c.get("status") == "True" and c.get("reason")
    ]


_HOPELESS = ("ErrImageNeverPull", "InvalidImageName")


def hopeless(pods: Iterable[Json], events: Iterable[Json]) -> tuple[str, str] | None:
    """Reason and message if no pod of a Job can ever run: refused by the API server, or without a possible image."""
    for state in _waiting_states(pods):
        if state.get("reason") in _HOPELESS:
            return state["reason"], state.get("message", "")
    for event in events:
        message = str(event.get("message", ""))
        forbidden = "is forbidden" in message and "exceeded quota" not in message
        if event.get("reason") == "FailedCreate" and (forbidden or "is invalid" in message):
            return "PodRefused", message.removeprefix("Error creating: ")
    return None


def why_pending(pods: Iterable[Json]) -> tuple[str, str]:
    """The reason and the sentence for a run that is ended because no pod of it came to run in time."""
    for state in _waiting_states(pods):
        reason, message = str(state.get("reason", "")), str(state.get("message", ""))
        known = reason if _BY_REASON.get(reason) == "Permanent" else "PendingTimeout"
        return known, f"No pod was running within pendingTimeout: {reason}. {message}".rstrip()
    for pod in pods:
        for c in (pod.get("status") or {}).get("conditions") or ():
            if c.get("type") == "PodScheduled" and c.get("status") == "False":
                return "PendingTimeout", f"No pod was running within pendingTimeout: {c.get('message', '')}"
    return "PendingTimeout", "No pod was running within pendingTimeout."


def _waiting_states(pods: Iterable[Json]) -> Iterator[Json]:
    for pod in pods:
        status = pod.get("status") or {}
        for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
            waiting = (container.get("state") or {}).get("waiting")
            if waiting and waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
                yield waiting


def all_pending(pods: Iterable[Json]) -> bool:
    """No pod has come to run: none exists, or all wait to be scheduled or for an image."""
    return all((pod.get("status") or {}).get("phase", "Pending") == "Pending" for pod in pods)


def delay_before(attempt: int, retry: Retry) -> int:
    """Seconds to wait before this attempt (2 is the first retry)."""
    initial: timedelta = retry.initial_delay
    retries = attempt - 1
    factor = {Backoff.EXPONENTIAL: 2 ** (retries - 1), Backoff.LINEAR: retries, Backoff.NONE: 1}[retry.backoff]
    return int(min(initial * factor, retry.max_delay).total_seconds())


def may_retry(outcome: Outcome, attempt: int, retry: Retry | None) -> bool:
    if retry is None or outcome.category in (None, "Cancelled"):
        return False
    return attempt < retry.max_attempts and outcome.category in {c.value for c in retry.retry_on}
