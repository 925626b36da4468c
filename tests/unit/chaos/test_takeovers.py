"""How long a shard is without a holder, and how soon the new one is at work."""

from hack.chaos import faults
from hack.chaos.audit import Entry
from hack.chaos.takeovers import Sighting, Standby, Trouble, gaps, with_first_acts

TAKEN, GIVEN_AWAY = 9.0, 10.0
SEEN = [Sighting(at, at, "0", holder) for at, holder in ((1.0, "a"), (TAKEN, "b"), (GIVEN_AWAY, ""))]
GAPS = gaps(SEEN, [Trouble(faults.KILL, "a", 2.0, 20.0)], [Standby("b", 0.0, 30.0)], lease=5)


def ledger_written(at: float, actor: str = "b") -> Entry:
    return Entry(at, actor, "update", "leases", "s-claim-1", 200, "", {})


def test_a_gap_ends_when_another_replica_holds_the_shard() -> None:
    assert [(gap.seconds, gap.to, gap.undisturbed) for gap in GAPS] == [(7.0, "b", True)]


def test_the_new_holder_is_at_work_with_its_first_write_for_a_schedule_of_the_shard() -> None:
    entries = [ledger_written(9.2, actor="a"), ledger_written(9.5), ledger_written(9.7)]
    assert [gap.idle for gap in with_first_acts(GAPS, entries, {"s": "0"})] == [0.5]
    assert [gap.idle for gap in with_first_acts(GAPS, entries, {"s": "1"})] == [None]


def test_what_it_writes_when_it_has_given_the_shard_away_says_nothing() -> None:
    assert [gap.idle for gap in with_first_acts(GAPS, [ledger_written(11)], {"s": "0"})] == [None]
