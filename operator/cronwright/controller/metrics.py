"""What a monitoring system may ask of us. Names use the words of status, so that the two can be read together."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from cronwright.core.model import Json

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._started = Counter(
            "cronwright_runs_started", "Jobs created, by trigger.", ["trigger"], registry=self.registry
        )
        self._lateness = Histogram(
            "cronwright_start_lateness_seconds",
            "From the moment a slot is due to its Job's creation; first attempts only, no catch-up.",
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
            registry=self.registry,
        )
        self._finished = Counter(
            "cronwright_runs_finished", "Runs that ended, by result.", ["result"], registry=self.registry
        )
        self._skipped = Counter(
            "cronwright_slots_skipped",
            "Slots that did not run, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self._missed = Counter(
            "cronwright_slots_missed", "Slots that passed while nobody was there.", registry=self.registry
        )
        self.schedules = Gauge("cronwright_schedules", "Schedules known.", registry=self.registry)
        self.shard_held = Gauge(
            "cronwright_shard_held", "1 for each shard that this replica holds.", ["shard"], registry=self.registry
        )
        self.loop_lag = Histogram(
            "cronwright_loop_lag_seconds",
            "How late the event loop comes to a task that wanted to run: what every start is late by, at least.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1),
            registry=self.registry,
        )
        self.concurrency = Gauge(
            "cronwright_concurrency",
            "Schedules that may be worked on at once; it follows how quickly the API server answers.",
            registry=self.registry,
        )
        self.queue_depth = Gauge("cronwright_queue_depth", "Schedules waiting to be looked at.", registry=self.registry)

    def started(self, trigger: str, lateness: float | None) -> None:
        self._started.labels(trigger).inc()
        if lateness is not None:
            self._lateness.observe(max(0.0, lateness))

    def changed(self, old: Json, new: Json) -> None:
        """Count what a status write tells anew."""
        for result in ("succeeded", "failed", "cancelled"):
            if (more := new.get(result, 0) - old.get(result, 0)) > 0:
                self._finished.labels(result).inc(more)
        before = old.get("skips", {})
        for reason, count in new.get("skips", {}).items():
            if (more := count - before.get(reason, 0)) > 0:
                self._skipped.labels(reason).inc(more)
        if (more := new.get("missed", 0) - old.get("missed", 0)) > 0:
            self._missed.inc(more)

    def render(self) -> bytes:
        return generate_latest(self.registry)
