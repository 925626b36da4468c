"""Deliberately broken controllers, to show that the simulator would notice: each is one mistake, made by a patch.

The first five are the mistakes that this design exists to avoid. The others undo a mend each, of a bug that the
simulator itself has found. Each seed was searched for with the mutant in place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from tests.simulation.network import Link

from cronwright.cluster.port import JOBS, Cluster, Json, NotFound, Resource
from cronwright.controller import engine as engines
from cronwright.controller.acting import Actor
from cronwright.controller.engine import Engine
from cronwright.controller.leadership import Leadership
from cronwright.controller.store import Store
from cronwright.core import decide as deciding
from cronwright.core import ledger as ledgers
from cronwright.core.decide import decide as decide_well
from cronwright.core.model import Decision, Ledger, Problem, Schedule, Start, Template, View
from cronwright.core.observe import run_from
from cronwright.core.progress import Progress
from cronwright.core.rebuilding import rebuild
from cronwright.core.requests import answer


@dataclass(frozen=True, slots=True)
class Mutant:
    mistake: str
    seed: int
    """The history that catches it."""
    shows: str
    """How, as a regular expression: a history may also fail for another reason."""
    break_: Callable[[], AbstractContextManager[Any]]


def claim_after_create() -> AbstractContextManager[Any]:
    original = Engine._act

    async def act(self: Engine, view: View, decision: Decision) -> bool:
        for start in decision.starts:
            job = await self._actor.job(view.schedule, view.template, decision.ledger, start)
            await self._actor.create(view.schedule, view.template, start, job)
        acted = await original(self, view, replace(decision, starts=()))
        return acted or bool(decision.starts)

    return mock.patch.object(Engine, "_act", act)


def no_compare_and_set() -> AbstractContextManager[Any]:
    original = Link.replace

    async def blind(self: Link, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        body["metadata"].pop("resourceVersion", None)
        return await original(self, resource, namespace, name, body)

    return mock.patch.object(Link, "replace", blind)


def watermark_from_status() -> AbstractContextManager[Any]:
    original = decide_well

    def decide(view: View) -> Decision:
        return original(replace(view, ledger=rebuild(view.schedule, view.runs)))

    return mock.patch.object(engines, "decide", decide)


def adopt_anybodys_job() -> AbstractContextManager[Any]:
    async def adopt(self: Actor, schedule: Schedule, _template: Template | None, start: Start) -> bool:
        try:
            job = await self._cluster.get(JOBS, schedule.key.namespace, start.name)
        except NotFound:
            return False
        run = run_from(job)
        if run is not None:
            self._store.runs[schedule.uid][run.name] = run
        return True

    return mock.patch.object(Actor, "_adopt", adopt)


def wake_for_what_is_past() -> AbstractContextManager[Any]:
    original = decide_well

    def decide(view: View) -> Decision:
        decision = original(view)
        past = [run.finished + run.ttl for run in view.runs.values() if run.ttl and run.finished and run.standing]
        return replace(decision, wake=min(past)) if past else decision

    return mock.patch.object(engines, "decide", decide)


def run_on_while_inspecting() -> AbstractContextManager[Any]:
    """A failed attempt that is being looked at counts as over, though it may be tried again."""

    def admit(view: View, ledger: Ledger, problem: Problem | None) -> Ledger:
        return deciding._settle(view, answer(view, deciding._let_lapse(view, ledger), problem), problem)

    unfinished = property(lambda self: self.state in ("Waiting", "Active", "Retrying"))
    patches = contextlib.ExitStack()
    patches.enter_context(mock.patch.object(Progress, "unfinished", unfinished))
    patches.enter_context(mock.patch.object(deciding, "_admit", admit))
    return patches


def no_fencing() -> AbstractContextManager[Any]:
    """Whoever led goes on until told otherwise, however long ago its Lease was last renewed."""

    def holds(self: Leadership, shard: int) -> bool:
        return shard in self._until

    return mock.patch.object(Leadership, "holds", holds)


def deaf_to_edits() -> AbstractContextManager[Any]:
    """A shard stays ours though its Lease tells of another holder."""
    return mock.patch.object(Leadership, "_note_holder")


def wall_clock_lease() -> AbstractContextManager[Any]:
    """A Lease is judged by the clock on the wall, which jumps."""
    original = Leadership.__init__

    def init(self: Leadership, cluster: Cluster, **given: Any) -> None:
        original(self, cluster, **{**given, "monotonic": given["now"]})

    return mock.patch.object(Leadership, "__init__", init)


def no_recall() -> AbstractContextManager[Any]:
    """Who begins anew does not ask what came and went before."""
    return mock.patch.object(Store, "doubts", return_value=[])


def no_doubt() -> AbstractContextManager[Any]:
    """What another replica had claimed or prepared was not run, if no watch has told of its Job."""
    return mock.patch.object(deciding, "doubtful", return_value=())


def forgotten_requests() -> AbstractContextManager[Any]:
    """Only the last request is remembered."""
    return mock.patch.object(ledgers, "REQUESTS_REMEMBERED", 1)


MUTANTS = (
    Mutant("claim after create", 0, "does not claim", claim_after_create),
    Mutant("no compare-and-set", 341, "watermark moved back", no_compare_and_set),
    Mutant("watermark from status", 10, r"status\.skips", watermark_from_status),
    Mutant("no fencing", 0, "would act on the same schedules", no_fencing),
    Mutant("wall-clock lease", 6, "would act on the same schedules", wall_clock_lease),
    Mutant("deaf to edits", 22, "would act on the same schedules", deaf_to_edits),
    Mutant("adopt anybody's Job", 25, r"status\.succeeded", adopt_anybodys_job),
    Mutant("wake for what is past", 0, "callbacks at one instant", wake_for_what_is_past),
    Mutant("run on while inspecting", 53, "was running", run_on_while_inspecting),
    Mutant("no recall", 318, "a second Job", no_recall),
    Mutant("no doubt", 387, "was running", no_doubt),
    Mutant("forgotten requests", 11, "was carried out", forgotten_requests),
)


@contextlib.contextmanager
def broken(mutant: Mutant) -> Iterator[None]:
    with mutant.break_():
        yield
