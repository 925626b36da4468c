"""`make simulate SEEDS=10000` runs that many histories on all cores; `make simulate SEED=7` tells one, line by line."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter

import orjson
from tests.simulation.history import histories, simulate
from tests.simulation.mutants import MUTANTS, broken
from tests.simulation.plan import plan_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="tell this one history")
    parser.add_argument("--mutant", help="find a seed that catches this mistake (mutants.py)")
    given = parser.parse_args()
    if given.mutant is not None:
        return search(given.mutant, range(given.first, given.first + given.seeds))
    if given.seed is not None:
        return tell(given.seed)
    return run(range(given.first, given.first + given.seeds))


def tell(seed: int) -> int:
    plan = plan_of(seed)
    _print(f"replicas {plan.replicas}, shards {plan.shards}, {plan.weather}, {plan.habits}")
    _print(f"disasters {plan.disasters}, deeds {plan.deeds}, sore points {plan.sore_points}, skews {plan.skews}")
    for body in (*plan.templates, *plan.schedules):
        _print(orjson.dumps(body).decode())
    result = simulate(seed, traced=True)
    for line in result.trace:
        _print(line)
    return 1 if result.violations else 0


def search(mistake: str, seeds: range) -> int:
    """Most changes of the controller make other histories of all seeds: then a mutant needs another one."""
    [mutant] = [mutant for mutant in MUTANTS if mutant.mistake == mistake]
    otherwise: Counter[str] = Counter()
    with broken(mutant):
        for result in histories(seeds):
            if result.violations and re.search(mutant.shows, result.violations[0]):
                _print(f"seed {result.seed}: {result.violations[0]}")
                return 0
            if result.violations:
                otherwise[re.sub(r"\d+", "N", result.violations[0])] += 1
    _print(f"none of {len(seeds)} seeds shows {mutant.shows!r}; otherwise: {otherwise.most_common(5)}")
    return 1


def run(seeds: range) -> int:
    began = time.monotonic()
    totals: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    not_promised: Counter[str] = Counter()
    failed = []
    for done, result in enumerate(histories(seeds), start=1):
        faults.update(result.faults)
        totals.update(steps=result.steps, seconds=int(result.seconds), jobs=result.jobs)
        not_promised.update(result.not_promised)
        if result.violations:
            failed.append(result.seed)
            _print(f"seed {result.seed}: {result.violations[0]}")
            _print(f"  replay: make simulate SEED={result.seed}")
        if done % 1000 == 0:
            _print(f"... {done} of {len(seeds)} histories, {time.monotonic() - began:.0f} s")
    _print(
        f"histories {len(seeds)}, failed {len(failed)}, steps {totals['steps']}, "
        f"virtual hours {totals['seconds'] / 3600:.0f}, Jobs {totals['jobs']}, "
        f"seconds {time.monotonic() - began:.0f}"
    )
    _print("faults: " + _told(faults))
    _print("not promised (docs/simulation.md): " + (_told(not_promised) or "nothing"))
    return 1 if failed else 0


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in counts.most_common())


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
