"""The attack from start to end: stage, faults, calm, count. Whatever happens, what was started is ended."""

import argparse
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from hack.chaos import audit, counting, faults, fleet, report, settling, staging
from hack.chaos.api import JOBS, LEASES, Json, Person, Recorder
from hack.chaos.attack import Attack
from hack.chaos.counting import Creation
from hack.chaos.errors import ChaosError
from hack.chaos.replicas import Replica, Settings
from hack.chaos.takeovers import Leases, gaps, with_first_acts
from hack.cluster import cli as cluster
from hack.cluster import control_plane, parts
from hack.cluster.folder import CHECKOUT, Folder, State

from cronwright.controller.leadership import shard_of

_CALM = 20.0
"""Seconds between the last fault and the last slot: the schedules must be seen to run again."""
_HEAD_START = 3.0
"""Seconds, beside those that creating them takes, between the creation of the schedules and their first slots."""
_PATIENCE = 240.0
"""Seconds for everything to settle after the last slot; never waited out when all is well."""


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    folder = Folder(options.dir.expanduser().resolve())
    try:
        outcome = _run(folder, options)
    except ChaosError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if not options.keep:
            cluster.main(["down", "--dir", str(folder.root)])
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(json.dumps(report.as_json(outcome), indent=1) + "\n")
    print(f"\n{report.as_text(outcome)}\n\n{'PASSED' if outcome.passed else 'FAILED'}; all of it: {options.report}")
    return 0 if outcome.passed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/chaos",
        description="Attack replicas of the operator and their cluster for a while, then count every slot's Jobs. "
        "Exits with 1 when a slot was doubled or lost.",
    )
    build = CHECKOUT / "build"
    parser.add_argument("--minutes", type=float, default=3.0, help="how long faults happen (default: 3)")
    parser.add_argument(
        "--schedules", type=_at_least(1), default=200, help="how many, every 5 to 10 s each (default: 200)"
    )
    parser.add_argument("--replicas", type=_at_least(1), default=3, help="of the operator (default: 3)")
    parser.add_argument("--shards", type=_at_least(1), default=6, help="the schedules are divided into (default: 6)")
    parser.add_argument("--lease", type=_at_least(2), default=5, help="seconds that a shard's Lease lasts (default: 5)")
    parser.add_argument("--seed", type=int, help="repeats the same faults at the same times (default: a new one)")
    parser.add_argument("--dir", type=Path, default=build / "chaos", help="the cluster's folder (default: build/chaos)")
    parser.add_argument("--report", type=Path, default=build / "chaos.json", help="(default: build/chaos.json)")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running, to look into it")
    return parser


def _at_least(minimum: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, not {value}")
        return value

    return number


def _run(folder: Folder, options: argparse.Namespace) -> report.Outcome:
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**31)
    print(f"seed {seed}", flush=True)
    names = [f"r{number}" for number in range(1, options.replicas + 1)]
    state = staging.start_cluster(folder)
    person = Person(state.ports["apiserver"], folder.certs)
    staging.install(folder, state, person)
    settings = Settings(staging.NAMESPACE, options.shards, options.lease)
    replicas, actors = staging.make_replicas(folder, state, person, names, settings)
    witness = _Witness(state, folder)
    attack = Attack(folder, state, replicas, person, staging.NAMESPACE, lambda text: print(text, flush=True))
    try:
        for replica in replicas.values():
            if not replica.start():
                raise ChaosError(f"{replica.name} is not ready; its log is {replica.log}")
        begin = fleet.quiet(time.time() + _HEAD_START + options.schedules * 0.05)
        end = fleet.quiet(begin + options.minutes * 60 + _CALM)
        planned = fleet.plan(options.schedules, begin, end, random.Random(f"schedules {seed}"))
        plan = faults.draw_faults(names, options.minutes * 60, options.lease, random.Random(f"faults {seed}"))
        staging.create_schedules(person, planned)
        print(f"{len(planned)} schedules, {len(plan)} faults in {options.minutes:g} minutes", flush=True)
        time.sleep(max(0.0, begin - time.time()))
        attack.carry_out(plan)
        _repair(folder, state, attack)
        print("No more faults; waiting until every schedule has settled", flush=True)
        found, unsettled = settling.await_settled(person, staging.NAMESPACE, end, _PATIENCE, lambda: _tend(replicas))
        attack.end_of_standby(time.time())
    finally:
        attack.close()
        witness.end()
        for replica in replicas.values():
            replica.wake_and_end()
    entries = list(audit.read(staging.audit_log(folder), actors))
    created = counting.creations(entries, witness.jobs)
    logged = {entry.uid for entry in entries}
    skips = {name: (s.get("status") or {}).get("skips") or {} for name, s in found.items()}
    seen = gaps(witness.leases.sightings, attack.troubles, attack.standbys, options.lease)
    shards = {name: str(shard_of(s["metadata"]["uid"], options.shards)) for name, s in found.items()}
    return report.Outcome(
        options={**{k: v for k, v in vars(options).items() if k not in ("dir", "report", "keep")}, "seed": seed},
        tallies=counting.tally(
            {p.name: p.due(max(begin, _created(found[p.name]) + 1), end) for p in planned},
            created,
            skips,
            entries,
            names,
        ),
        created=created,
        entries=entries,
        unlogged=sum(c.uid not in logged for c in created),
        faults=Counter(trouble.kind for trouble in attack.troubles),
        deleted=attack.deleted,
        gaps=with_first_acts(seen, entries, shards),
        lease=options.lease,
        unsettled=unsettled,
        deaths={name: replica.deaths for name, replica in replicas.items() if replica.deaths},
    )


def _created(schedule: Json) -> int:
    """A slot that was past when its schedule was created never was due."""
    return int(datetime.fromisoformat(schedule["metadata"]["creationTimestamp"]).timestamp())


class _Witness:
    """Sees every Job and every shard's Lease, as far as a watch can."""

    def __init__(self, state: State, folder: Folder) -> None:
        self.jobs: dict[str, Creation] = {}
        self.leases = Leases()
        port = state.ports["apiserver"]
        self._recorders = [
            Recorder(port, folder.certs, f"{JOBS}/namespaces/{staging.NAMESPACE}/jobs", self._see_job, slim=True),
            Recorder(
                port, folder.certs, f"{LEASES}/namespaces/{staging.NAMESPACE}/leases", self._see_lease, slim=False
            ),
        ]
        for recorder in self._recorders:
            recorder.start()

    def _see_job(self, job: Json) -> None:
        meta = job["metadata"]
        notes = meta.get("annotations") or {}
        if "cronwright.dev/slot" in notes and meta["uid"] not in self.jobs:
            self.jobs[meta["uid"]] = Creation(
                at=time.time(),
                schedule=meta["ownerReferences"][0]["name"],
                slot=int(notes["cronwright.dev/slot"]),
                attempt=int(notes["cronwright.dev/attempt"]),
                name=meta["name"],
                uid=meta["uid"],
            )

    def _see_lease(self, lease: Json) -> None:
        self.leases.see(lease, time.time())

    def end(self) -> None:
        for recorder in self._recorders:
            if not recorder.is_alive():
                raise ChaosError(f"The {recorder.name} died: what it did not see cannot be counted.")
            recorder.end()


def _repair(folder: Folder, state: State, attack: Attack) -> None:
    """A part that died of an attack on another one is not what is tested here; it is started again. And kwok
    is in any case: what it could not write to a pod while the API server was away it never tries again.
    """
    with folder.locked():
        attack.dead_parts += [row.name for row in control_plane.status(folder, state) if row.state == "down"]
        control_plane.up(folder, parts.Parts(Path(state.bin)), nodes=None, arguments={})
        control_plane.restart(folder, state, "kwok")


def _tend(replicas: dict[str, Replica]) -> None:
    for replica in replicas.values():
        replica.live_on()
