"""One history: everything that follows from a seed, in three acts.

Chaos: replicas work while the drawn faults and people do their worst. Calm: everything is mended, and the accounts must
come right by themselves. Rest: every schedule is suspended, what runs ends, and then nobody may write anything at all.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unittest import mock

from tests.simulation.adversary import NAMESPACE, Adversary
from tests.simulation.apiserver import ApiServer
from tests.simulation.checks import PERSON, Checks
from tests.simulation.controllers import OUTSIDE, Controllers, ended
from tests.simulation.loop import RUNNING, HotLoop, VirtualLoop
from tests.simulation.network import CALM, Net
from tests.simulation.plan import plan_of
from tests.simulation.replica import Replica

from cronwright.cluster.port import JOBS, SCHEDULES, TEMPLATES
from cronwright.controller import engine as engines
from cronwright.controller import operator as operators
from cronwright.controller import pacing
from cronwright.core.model import Decision, View
from cronwright.timing import format_instant, parse_instant

CALM_SECONDS = 200.0
"""Longer than a silent watch can go unnoticed and a backoff can last, together."""
REST_SECONDS = 300.0
IDLE_SECONDS = 70.0
CALLS_WHEN_IDLE = 12
"""Calls a replica may make in a minute with nothing to do: audits, and watches that end of age."""
MOST_STEPS = 2_000_000


@dataclass(slots=True)
class Result:
    seed: int
    steps: int = 0
    seconds: float = 0.0
    jobs: int = 0
    not_promised: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()


class Stop(Exception):
    """A violation was found: what comes after it is not worth looking at."""


class History:
    def __init__(self, seed: int, *, traced: bool = False) -> None:
        self.result = Result(seed)
        self._plan = plan = plan_of(seed)
        self._loop = loop = VirtualLoop(random.Random(f"{seed}/order"))
        self._traced = traced
        self.decide: Callable[[View], Decision] = vars(engines)["decide"]  # a mutant's, perhaps
        self.server = ApiServer(self._truth, random.Random(f"{seed}/server"))
        say = self._say if traced else None
        faults = self.result.faults
        self._net = Net(self.server, loop, random.Random(f"{seed}/network"), faults, say, plan.weather)
        self.checks = Checks(
            self.server,
            self._violated,
            self._truth,
            self._alive,
            self._leaders,
            forgetful=bool(plan.weather.watch_expired),
        )
        controllers = Controllers(self.server, loop, self._truth, random.Random(f"{seed}/controllers"), plan.habits)
        self.replicas = [
            Replica(self._net, loop, n + 1, self._truth, plan.shards, self._violated, skew)
            for n, skew in enumerate(plan.skews)
        ]
        self._adversary = Adversary(plan, self.server, loop, self.replicas, faults, say)
        self.server.listeners += [self.checks.hear, controllers.hear, self._adversary.hear]

    def _truth(self) -> float:
        return self._plan.start + self._loop.time()

    def _alive(self) -> dict[str, float]:
        """The processes that are alive, and since when."""
        return {r.process.name: self._plan.start + r.process.born for r in self.replicas if r.alive and r.process}

    def _leaders(self) -> list[list[str]]:
        """Of each shard, the replicas that would act on it now."""
        there = [(r.process.name, r.operator.leadership) for r in self.replicas if r.alive and r.process and r.operator]
        return [[name for name, lead in there if lead.holds(shard)] for shard in range(self._plan.shards)]

    def _say(self, who: str, what: str) -> None:
        if self.result.violations:
            return  # what comes after it is its consequence
        instant = self._loop.time()
        self.result.trace.append(f"{format_instant(int(self._truth()))} {instant:11.6f} {who:14} {what}")

    def _violated(self, what: str) -> None:
        if self._traced:
            self._say("VIOLATION", what)
        self.result.violations.append(what)

    def run(self) -> Result:
        try:
            self._loop.run_until_complete(self._loop.create_task(self._acts(), context=OUTSIDE.copy()))
        except Stop:
            pass
        except HotLoop as error:
            self._violated(str(error))
        finally:
            self._net.over = True
            self.result.steps = self._loop.steps
            self.result.seconds = self._loop.time()
            self.result.jobs = sum(len(uids) for s in self.checks.stories.values() for uids in s.jobs.values())
            self.result.not_promised = self.checks.not_promised
            self._loop.bury()
            self._loop.close()
        return self.result

    async def _acts(self) -> None:
        plan = self._plan
        for body in plan.templates:
            self.server.create(TEMPLATES, NAMESPACE, body, by=PERSON)
        for body in plan.schedules:
            self.server.create(SCHEDULES, NAMESPACE, body, by=PERSON)
        for replica in self.replicas:
            replica.boot()
        self._adversary.begin()
        await self._pass(plan.chaos)
        self._mark("calm")
        self._net.weather = CALM
        await self._adversary.mend()
        await self._pass(CALM_SECONDS)
        self.checks.accounts()
        await self._rest()

    async def _rest(self) -> None:
        self._mark("rest")
        for schedule in self.server.peek(SCHEDULES):
            name = schedule["metadata"]["name"]
            self.server.patch(SCHEDULES, NAMESPACE, name, {"spec": {"suspend": True}}, by=PERSON)
        end = self._truth() + REST_SECONDS
        while self._truth() < end:
            await self._pass(20)
            retries = [r for s in self.server.peek(SCHEDULES) for r in (s.get("status") or {}).get("retrying") or ()]
            # Set by a clock that was ahead, a retry is as late as the clock was early.
            end = max([end, *(parse_instant(r["at"]) + REST_SECONDS for r in retries)])
            if not retries and all(ended(job) for job in self.server.peek(JOBS)):
                break
        await self._pass(60)
        self.checks.rest()
        self._check()
        writes = self.checks.writes
        calls = [Counter(replica.link.calls) for replica in self.replicas if replica.link is not None]
        await self._pass(IDLE_SECONDS)
        if self.checks.writes != writes:
            self._violated(f"{self.checks.writes - writes} writes while nothing happened")
        for replica, before in zip(self.replicas, calls, strict=True):
            assert replica.link is not None
            made = replica.link.calls - before
            for verb in ("replace", "get", "delete"):  # shards are renewed, and replicas that crashed are forgotten
                del made[verb]
            if made.total() > CALLS_WHEN_IDLE:
                self._violated(f"replica-{replica.number} made calls while nothing happened: {dict(made)}")
        self._check()

    async def _pass(self, seconds: float) -> None:
        end = self._loop.time() + seconds
        while (left := end - self._loop.time()) > 0:
            await asyncio.sleep(min(5.0, left))
            self._check()

    def _check(self) -> None:
        if self._loop.steps > MOST_STEPS:
            self._violated(f"{MOST_STEPS} steps in {self._loop.time():.0f} s: something turns in circles")
        if self.result.violations:
            raise Stop

    def _mark(self, act: str) -> None:
        if self._traced:
            self._say("", f"=== {act}")

    def decided(self, view: View) -> Decision:
        """`decide`, with what came of it in the trace."""
        decision = self.decide(view)
        process = RUNNING.get()
        self._say(process.name if process else "", f"decides {view.schedule.key.name}: {_told(view, decision)}")
        return decision


def _told(view: View, decision: Decision) -> str:
    ledger = decision.ledger
    parts = [f"watermark {ledger.watermark}"]
    parts += ["writes"] if decision.write else []
    parts += [f"claim {c.slot}/{c.attempt}{' ' + c.ending if c.ending else ''}" for c in ledger.claims]
    parts += [f"starts {start.name}" for start in decision.starts]
    parts += [f"{stop.how} {stop.name} ({stop.why})" for stop in decision.stops]
    parts += [f"inspects {name}" for name in decision.inspect]
    parts += ["tells"] if decision.status != view.schedule.status else []
    return ", ".join(parts)


class _Errors(logging.Handler):
    """The controller logs an error only when a bug of its own surprised it."""

    def __init__(self, history: History) -> None:
        super().__init__(logging.ERROR)
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"
        self._history._violated(text)


def simulate(seed: int, *, traced: bool = False) -> Result:
    """Run one history. The same seed gives the same history, to the letter."""
    history = History(seed, traced=traced)
    log = logging.getLogger("cronwright")
    errors = _Errors(history)
    level, propagate, state = log.level, log.propagate, random.getstate()
    random.seed(f"{seed}/controller")
    log.setLevel(logging.ERROR)
    log.propagate = False
    log.addHandler(errors)
    collecting = gc.isenabled()
    gc.disable()
    try:
        with (
            mock.patch.object(operators, "AUDIT_INTERVAL", history._plan.audit_every),
            mock.patch.object(pacing, "FIRST", 4),  # enough to interleave; more would only cost time
            mock.patch.object(pacing, "MOST", 8),
            mock.patch.object(engines, "decide", history.decided if traced else history.decide),
        ):
            return history.run()
    finally:
        random.setstate(state)
        log.setLevel(level)
        log.propagate = propagate
        log.removeHandler(errors)
        if collecting:
            gc.enable()


def histories(seeds: range) -> Iterator[Result]:
    """Run these on all cores; they come as they are done."""
    with multiprocessing.Pool(os.cpu_count(), maxtasksperchild=2000) as pool:
        yield from pool.imap_unordered(_one, seeds, chunksize=10)


def _one(seed: int) -> Result:
    result = simulate(seed)
    if seed % 25 == 0:
        gc.collect()
    return result
