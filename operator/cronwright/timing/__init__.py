"""When: cron, intervals, time zones, exclusions, jitter and catch-up.

Pure: no I/O, no clock of its own, and no other part of cronwright. Instants are unix seconds.
"""

from cronwright.timing.catchup import NOTHING_RUNS, CatchUp, Settlement, Skipped, settle
from cronwright.timing.durations import format_duration, parse_duration
from cronwright.timing.errors import TimingError
from cronwright.timing.exclusions import Exclusion
from cronwright.timing.instants import format_instant, parse_instant
from cronwright.timing.timetable import Count, Timetable, When, compile_when
from cronwright.timing.zones import Zone, zone

__all__ = [
    "NOTHING_RUNS",
    "CatchUp",
    "Count",
    "Exclusion",
    "Settlement",
    "Skipped",
    "Timetable",
    "TimingError",
    "When",
    "Zone",
    "compile_when",
    "format_duration",
    "format_instant",
    "parse_duration",
    "parse_instant",
    "settle",
    "zone",
]
