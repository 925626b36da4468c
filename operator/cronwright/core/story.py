"""The Events a person would care for: what changed between two statuses, and nothing for routine repetition.

A schedule that runs every minute and succeeds tells nothing here; its status does. Deriving Events from the change of
status means that each is told once, by whoever writes that change.
"""

from __future__ import annotations

from collections.abc import Iterator

from cronwright.core.model import Json, Note
from cronwright.core.observe import condition


def story(old: Json, new: Json) -> Iterator[Note]:
    yield from readiness(old, new)
    yield from _missed(old, new)
    yield from _skipped(old, new)
    yield from _endings(old, new)
    yield from _requests(old, new)
    yield from _lifecycle(old, new)


def readiness(old: Json, new: Json) -> Iterator[Note]:
    before, now = condition(old, "Ready"), condition(new, "Ready")
    if now is None:
        return
    if now["status"] == "False":
        if before is None or (before["reason"], before["message"]) != (now["reason"], now["message"]):
            yield Note("Warning", now["reason"], now["message"])
    elif now["status"] == "True" and before is not None and before["status"] == "False":
        if before["reason"] == "TooManyFailures":
            return  # a pause: that it is over is told as such
        yield Note("Normal", "Ready", "What was wrong has been mended.")


def _missed(old: Json, new: Json) -> Iterator[Note]:
    count = new.get("missed", 0) - old.get("missed", 0)
    if count > 0:
        slots = "1 slot was" if count == 1 else f"{count} slots were"
        yield Note("Warning", "Missed", f"{slots} missed while nobody was there to run them (see spec.catchUp).")


def _skipped(old: Json, new: Json) -> Iterator[Note]:
    """The first slot skipped for a reason; the ones after it, as long as nothing runs in between, are repetition."""
    before, now = old.get("lastSkip"), new.get("lastSkip")
    if now is None or now == before:
        return
    ready = condition(new, "Ready")
    if ready is not None and ready["status"] == "False" and ready["reason"] == now["reason"]:
        return  # what is wrong has been told already
    if new.get("missed", 0) > old.get("missed", 0):
        return  # and so has an outage
    ran_since = before is not None and new.get("lastScheduleTime", "") > before["slot"]
    if before is None or before["reason"] != now["reason"] or ran_since:
        text = f"The slot {now['slot']} did not run. {now.get('message', '')}".rstrip()
        yield Note("Warning", now["reason"], text)


def _endings(old: Json, new: Json) -> Iterator[Note]:
    """Attempts that failed, runs that were ended, and runs that succeeded after all."""
    known = {record["name"]: record for record in old.get("recentRuns") or ()}
    waiting = {entry["slot"]: entry for entry in new.get("retrying") or ()}
    for record in reversed(new.get("recentRuns") or []):
        if "finishedAt" not in record or "finishedAt" in known.get(record["name"], {}):
            continue
        if record["phase"] == "Succeeded":
            if record["attempt"] > 1:
                yield Note("Normal", "RunSucceeded", f"{record['name']} succeeded at attempt {record['attempt']}.")
            continue
        if record.get("category") == "Cancelled":
            yield Note("Normal", "RunCancelled", f"{record['name']} was ended. {record.get('message', '')}".rstrip())
            continue
        why = record.get("category", "failed")
        if "exitCode" in record:
            why += f", exit code {record['exitCode']}"
        text = f"{record['name']} failed ({why})."
        if record.get("message"):
            text += f" {record['message'].rstrip(' .')}."
        if retry := waiting.get(record["slot"]):
            text += f" Attempt {retry['attempt']} starts at {retry['at']}."
        yield Note("Warning", "RunFailed", text)
    if new.get("consecutiveFailures", 0) == 0 and old.get("consecutiveFailures", 0) > 0:
        yield Note("Normal", "Recovered", f"A run succeeded after {old['consecutiveFailures']} that failed.")


def _requests(old: Json, new: Json) -> Iterator[Note]:
    known = {request["id"] for request in old.get("requests") or ()}
    for request in reversed(new.get("requests") or []):
        if request["id"] not in known:
            refused = request["state"] == "Refused"
            text = f"Request {request['id']} ({request['kind']}): {request.get('message', '')}"
            yield Note("Warning" if refused else "Normal", "RequestRefused" if refused else "RequestAccepted", text)


def _lifecycle(old: Json, new: Json) -> Iterator[Note]:
    phase = new.get("phase")
    if phase == old.get("phase"):
        return
    if phase in ("Completed", "Expired"):
        ready = condition(new, "Ready")
        reason, message = (ready["reason"], ready["message"]) if ready else (phase, "")
        yield Note("Warning" if reason == "AtInPast" else "Normal", reason, message)
    elif phase == "Suspended":
        yield Note("Normal", "Suspended", "spec.suspend is true: no new runs are started.")
    elif phase == "Active" and old.get("phase") in ("Suspended", "Paused"):
        yield Note("Normal", "Resumed", f"The next run is at {new.get('nextRunTime', 'no time yet')}.")
