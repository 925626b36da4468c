"""Carrying decisions out: the few writes there are, each safe to repeat, each observed by the store at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

from cronwright.cluster.port import (
    EVENTS,
    JOBS,
    LEASES,
    PODS,
    SCHEDULES,
    AlreadyExists,
    Cluster,
    ClusterError,
    Conflict,
    NotFound,
    Refused,
    Resource,
)
from cronwright.controller.store import LEDGER, Recorded, Store
from cronwright.core import ledger as ledgers
from cronwright.core import parameters
from cronwright.core.failures import all_pending, classify, glimpse, hopeless, why_pending
from cronwright.core.model import (
    MANAGED_BY,
    PREFIX,
    REQUEST_PREFIX,
    Json,
    Key,
    Ledger,
    Note,
    Problem,
    Run,
    Schedule,
    Start,
    Stop,
    Template,
)
from cronwright.core.names import job_name, lease_name
from cronwright.core.observe import owner_of, run_from
from cronwright.core.preparing import promised
from cronwright.core.progress import cancelled, record_of, remembered, retry_of
from cronwright.core.render import again, owner_reference, render, retry_policy

log = logging.getLogger(__name__)

LEASE_SECONDS = 15
LAST_WORDS = 30.0
"""Seconds to wait for a watch to tell of a deletion that was met otherwise; far longer than a relist takes."""


class Actor:
    def __init__(self, cluster: Cluster, store: Store, now: Callable[[], float], identity: str) -> None:
        self._cluster = cluster
        self._store = store
        self._now = now
        self._identity = identity

    async def record(self, schedule: Schedule, ledger: Ledger) -> bool:
        """Write the ledger by compare-and-set. False: somebody else has written it; the store has their version now.

        A Lease is one of the kinds that the API server creates when it is told to replace one that is not there,
        whatever resourceVersion is given: only the UID makes that a conflict, and keeps an old ledger from coming back.
        """
        namespace, name = schedule.key.namespace, lease_name(schedule.key.name, schedule.uid)
        known = self._store.ledgers.get(schedule.uid)
        body = self._lease(schedule, ledger if known is None else ledgers.stamped(ledger, known.version))
        if known is not None:
            known.own = False  # until it is answered, this write may have happened or not
        try:
            if known is None or known.lost:
                written = await self._cluster.create(LEASES, namespace, body)
            else:
                body["metadata"] |= {"resourceVersion": str(known.version), "uid": known.uid}
                body["spec"]["leaseTransitions"] = known.transitions + (known.holder != self._identity)
                written = await self._cluster.replace(LEASES, namespace, name, body)
        except (Conflict, AlreadyExists, NotFound):
            return await self._reread(namespace, name, known)
        self._store.observe_lease(written)
        if (recorded := self._store.ledgers.get(schedule.uid)) is not None:
            recorded.own = True
        return True

    async def _reread(self, namespace: str, name: str, known: Recorded | None) -> Literal[False]:
        try:
            self._store.observe_lease(await self._cluster.get(LEASES, namespace, name))
        except NotFound:
            if known is None or not self._is_told_by_nobody(known):
                raise
            known.lost = True
        return False

    def _is_told_by_nobody(self, known: Recorded) -> bool:
        """Whether the watch has had its time to tell of a Lease's deletion, and with it the Lease's last words. What
        we remember of it may be older than those: a replica that slept has yet to hear what others wrote meanwhile,
        and would move the watermark back."""
        now = asyncio.get_running_loop().time()  # which does not jump as the wall clock may
        if known.missing_since is None:
            known.missing_since = now
        return now - known.missing_since > LAST_WORDS

    def _lease(self, schedule: Schedule, ledger: Ledger) -> Json:
        now = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        labels = {"app.kubernetes.io/managed-by": MANAGED_BY, PREFIX + "schedule": schedule.key.name[:63]}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": lease_name(schedule.key.name, schedule.uid),
                "namespace": schedule.key.namespace,
                "labels": labels,
                "annotations": {LEDGER: ledgers.encode(ledger)},
                "ownerReferences": [owner_reference(schedule)],
            },
            "spec": {
                "holderIdentity": self._identity,
                "acquireTime": now,
                "renewTime": now,
                "leaseDurationSeconds": LEASE_SECONDS,
                "leaseTransitions": 0,
            },
        }

    async def job(self, schedule: Schedule, template: Template | None, ledger: Ledger, start: Start) -> Json | Problem:
        """The Job that a claim asks for. A retry is made of the attempt before it."""
        return await self._repeat(schedule, start) or self.body(schedule, template, ledger, start)

    async def create(
        self, schedule: Schedule, template: Template | None, start: Start, body: Json | bytes | Problem
    ) -> None:
        """Create the Job of a claim. If it is there already it is adopted, provided that it is ours."""
        if isinstance(body, Problem):
            self._refuse(schedule, template, start, body.reason, body.message)
            return
        self._store.asked[schedule.uid].add(start.name)
        try:
            self._store.observe_job(await self._cluster.create(JOBS, schedule.key.namespace, body))
        except AlreadyExists:
            await self._adopt(schedule, template, start)
        except (Refused, NotFound) as error:
            if await self._adopt(schedule, template, start):
                return  # an earlier request made it, and its answer got lost; the Job may fill the quota itself
            quota = "exceeded quota" in str(error)
            self._refuse(schedule, template, start, "QuotaExceeded" if quota else "JobRefused", str(error))

    async def _repeat(self, schedule: Schedule, start: Start) -> Json | None:
        """The Job of a retry; None for a first attempt, and where the one before left no Job, or not one of ours."""
        if start.again is None:
            return None
        try:
            before = await self._cluster.get(JOBS, schedule.key.namespace, start.again)
        except NotFound:
            return None
        return again(before, schedule, start.claim) if owner_of(before) == schedule.uid else None

    @staticmethod
    def body(schedule: Schedule, template: Template | None, ledger: Ledger, start: Start) -> Json | Problem:
        """The Job of a first attempt, from the template as it is now."""
        if template is None or template.spec is None or schedule.spec is None:
            return Problem("TemplateNotFound", "The template is gone.")
        resolved = parameters.resolve(template.spec, schedule.spec.parameters, start.claim.parameters or {})
        if isinstance(resolved, Problem):
            return resolved
        return render(schedule, template, start.claim, resolved, ledger.last_success)

    async def _adopt(self, schedule: Schedule, template: Template | None, start: Start) -> bool:
        """Whether a Job of that name is there; one that is not ours is a refusal."""
        try:
            job = await self._cluster.get(JOBS, schedule.key.namespace, start.name)
        except NotFound:
            return False  # if it has just been deleted, the next look decides anew
        run = run_from(job)
        if owner_of(job) == schedule.uid and run is not None and run.slot == start.claim.slot:
            self._store.observe_job(job)
            return True
        text = f"A Job named {start.name} exists already and is not this schedule's; delete or rename it."
        self._refuse(schedule, template, start, "NameTaken", text)
        return True

    def _refuse(self, schedule: Schedule, template: Template | None, start: Start, reason: str, message: str) -> None:
        now = int(self._now())
        claim = start.claim
        run = Run(
            name=start.name,
            uid="",
            version=0,
            slot=claim.slot,
            attempt=claim.attempt,
            trigger=claim.trigger,
            token=claim.token,
            phase="Failed",
            created=now,
            finished=now,
            refused=True,
            retry=retry_policy(schedule, template),
            reason=reason,
            message=message,
        )
        run.outcome = classify(run, (), schedule.spec.failure_rules if schedule.spec else ())
        self._store.runs[schedule.uid][run.name] = run
        self._store.answered(schedule.uid, run.name)
        log.warning("%s: %s was refused: %s", schedule.key, start.name, message)

    async def stop(self, schedule: Schedule, stop: Stop) -> None:
        run = self._store.runs[schedule.uid].get(stop.name)
        if run is None:
            return
        try:
            if stop.how == "Delete":
                await self._delete(schedule, run, stop.why)
            elif stop.how == "End":
                await self._end(schedule, run, stop.why, cancelled(stop.why).message)
            elif found := await self._examine(schedule, run, stop):
                await self._end(schedule, run, *found)
        except NotFound:
            run.gone = True

    async def _delete(self, schedule: Schedule, run: Run, why: str) -> None:
        """A run that gives way is gone only when its pods are; history is removed behind everybody's back."""
        if why != "History":
            run.reason = run.reason or why
        if why == "Stray":
            log.warning("%s: %s was claimed by nobody: deleting it", schedule.key, run.name)
        foreground = why != "History"
        try:
            await self._cluster.delete(JOBS, schedule.key.namespace, run.name, uid=run.uid, foreground=foreground)
        except Conflict:  # another UID: a Job of its name that is not this one
            run.gone = True
        run.deleting = True

    async def _examine(self, schedule: Schedule, run: Run, stop: Stop) -> tuple[str, str] | None:
        """Why a run without a ready pod must end, from its pods and, if there are none, from what refused them."""
        namespace = schedule.key.namespace
        pods = await self._pods(namespace, run.name)
        run.examined = int(self._now())
        if not all_pending(pods):
            run.ready = True
            return None
        if stop.how == "EndIfPending":
            return why_pending(pods)
        events: list[Json] = []
        if not pods:
            fields = f"involvedObject.uid={run.uid},reason=FailedCreate"
            events = (await self._cluster.list(EVENTS, namespace=namespace, fields=fields)).items
        return hopeless(pods, events)

    async def _end(self, schedule: Schedule, run: Run, why: str, message: str) -> None:
        """A Job whose deadline has passed is failed by its own controller, and stays to be read."""
        namespace = schedule.key.namespace
        job = await self._cluster.get(JOBS, namespace, run.name)
        if job["metadata"]["uid"] != run.uid:
            run.gone = True  # somebody else's has its name now
            return
        deadline = str(job["spec"].get("activeDeadlineSeconds", ""))
        marks = {PREFIX + "ended": why, PREFIX + "deadline": deadline}
        if message:
            marks[PREFIX + "ended-message"] = message[:1024]
        patch = {"metadata": {"uid": run.uid, "annotations": marks}, "spec": {"activeDeadlineSeconds": 1}}
        self._store.observe_job(await self._cluster.patch(JOBS, namespace, run.name, patch))

    async def inspect(self, schedule: Schedule, ledger: Ledger, name: str) -> None:
        """Look at the pods of an attempt: why it failed, what it said, or why one is leaving before that. Or, if no Job
        is known, for the Job."""
        run = self._store.runs[schedule.uid].get(name)
        if run is None:
            await self._find(schedule, ledger, name)
            return
        pods = await self._pods(schedule.key.namespace, name)
        if run.finished is None:
            run.glimpsed = glimpse(pods)
            return
        run.outcome = classify(run, pods, schedule.spec.failure_rules if schedule.spec else ())

    async def _find(self, schedule: Schedule, ledger: Ledger, name: str) -> None:
        """Ask for a Job that should be there; if it is not, what status remembers of it has to do."""
        recorded = self._store.ledgers.get(schedule.uid)
        try:
            job = await self._cluster.get(JOBS, schedule.key.namespace, name)
        except NotFound:
            job = None
        if job is not None and owner_of(job) == schedule.uid:
            self._store.observe_job(job)
            return
        record = record_of(schedule.status, name)
        claim = next((c for c in promised(ledger) if job_name(schedule.key.name, c) == name), None)
        if recorded is not None and record is None and (claim is None or not claim.ending):
            recorded.sought |= {name}  # nothing tells that it was ever started: it waits
        elif claim is not None:
            template = self._store.templates.get(self._store.template_key(schedule)) if schedule.spec else None
            waits = retry_of(schedule.status, schedule.key.name, claim) is not None
            retry = retry_policy(schedule, template) if waits else None
            self._store.runs[schedule.uid].setdefault(name, remembered(claim, name, record, retry))

    async def _pods(self, namespace: str, job: str) -> list[Json]:
        selector = f"batch.kubernetes.io/job-name={job}"
        return (await self._cluster.list(PODS, namespace=namespace, selector=selector)).items

    async def write_status(self, resource: Resource, key: Key, uid: str, old: Json, new: Json) -> Json | None:
        """Patch what changed. None: the object is gone. Where another one has its name, this is a Conflict like any
        other: what is known of it is behind, and the next look knows better."""
        patch = {"metadata": {"uid": uid}, "status": merge_patch(old, new)}
        try:
            return await self._cluster.patch(resource, key.namespace, key.name, patch, sub="status")
        except NotFound:
            return None

    async def tell(self, resource: Resource, key: Key, uid: str, note: Note) -> None:
        """An Event. Losing one is no harm: status tells the same."""
        when = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{key.name[:200]}.", "namespace": key.namespace},
            "involvedObject": {
                "apiVersion": "cronwright.dev/v1alpha1",
                "kind": resource.kind,
                "namespace": key.namespace,
                "name": key.name,
                "uid": uid,
            },
            "type": note.kind,
            "reason": note.reason,
            "message": note.message[:1024],
            "source": {"component": "cronwright"},
            "reportingComponent": "cronwright",
            "reportingInstance": self._identity,
            "firstTimestamp": when,
            "lastTimestamp": when,
            "count": 1,
        }
        try:
            await self._cluster.create(EVENTS, key.namespace, body)
        except ClusterError as error:
            log.debug("%s: an Event was not written: %s", key, error)

    async def own(self, schedule: Schedule, template: str, uid: str) -> None:
        """Make the template (or, with no UID, none) the owner of the schedule."""
        key = schedule.key
        current = await self._cluster.get(SCHEDULES, key.namespace, key.name)
        meta = current["metadata"]
        owners = [ref for ref in meta.get("ownerReferences") or () if ref["kind"] != "TaskTemplate"]
        if uid:
            head = {"apiVersion": "cronwright.dev/v1alpha1", "kind": "TaskTemplate"}
            owners.append({**head, "name": template, "uid": uid})
        patch = {"metadata": {"resourceVersion": meta["resourceVersion"], "ownerReferences": owners}}
        try:
            self._store.observe_schedule(await self._cluster.patch(SCHEDULES, key.namespace, key.name, patch))
        except Conflict:
            return  # somebody edits it right now: the next look tries again
        except Refused as error:
            schedule.owners = (uid,) if uid else ()  # asked once a change, not at every look
            log.warning("%s: templateRef.onDelete: the owner could not be set: %s", key, error)

    async def remove_requests(self, schedule: Schedule, ids: tuple[str, ...]) -> None:
        annotations = {REQUEST_PREFIX + name: None for name in ids}
        patch = {"metadata": {"uid": schedule.uid, "annotations": annotations}}
        key = schedule.key
        try:
            self._store.observe_schedule(await self._cluster.patch(SCHEDULES, key.namespace, key.name, patch))
        except (NotFound, Conflict):
            return  # the schedule is gone; one that was made anew may ask for the same again


def merge_patch(old: Json, new: Json) -> Json:
    """The JSON merge patch that makes `new` of `old`: maps are merged, so what is gone from them is named as null.

    A map that changed is written as a whole: `old` may be behind what it is merged into, and half a map is no status.
    """
    changed = {name: _whole(old.get(name), value) for name, value in new.items() if old.get(name) != value}
    return {name: None for name in old if name not in new} | changed


def _whole(before: Any, value: Any) -> Any:
    if not (isinstance(before, dict) and isinstance(value, dict)):
        return value
    return dict.fromkeys(before) | {name: _whole(before.get(name), each) for name, each in value.items()}
