"""The names of what we create: pure functions of what it stands for, so that creating it twice is a conflict."""

from __future__ import annotations

import hashlib

from cronwright.core.model import Claim

NAME_LIMIT = 63
"""A Job's name becomes a label value and a pod's host name."""


def job_name(schedule: str, claim: Claim) -> str:
    """`nightly-1795046400-1`: the schedule, the slot's unix seconds, the attempt.

    A requested run carries its request's hash too: it may share its second with a slot or another request.
    """
    token = f"-{_short(claim.token)}" if claim.token else ""
    return _fit(schedule, f"-{claim.slot}{token}-{claim.attempt}")


def lease_name(schedule: str, uid: str) -> str:
    """The claim Lease of a schedule. It carries the UID: a schedule made anew under the same name is another one."""
    return _fit(schedule, f"-claim-{_short(uid)}", limit=253)


def trial_name(template: str, uid: str) -> str:
    """The Job that is only ever dry-run. Always the same, since it stands in what the API server says of it."""
    return _fit(template, f"-check-{_short(uid)}")


def _fit(stem: str, suffix: str, limit: int = NAME_LIMIT) -> str:
    if len(stem) + len(suffix) <= limit:
        return stem + suffix
    mark = "-" + _short(stem)
    return stem[: limit - len(suffix) - len(mark)].rstrip("-.") + mark + suffix


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
