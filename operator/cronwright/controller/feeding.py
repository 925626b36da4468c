"""kopf as a feed of the two kinds, and nothing more.

kopf is given `on.event` handlers only, and storages that store nothing: it never writes to anybody's objects. Each
setting is measured (docs/adr/0005-kopf.md).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import kopf

from cronwright.cluster.port import SCHEDULES, TEMPLATES
from cronwright.controller.watching import Observer

GROUP, VERSION = "cronwright.dev", "v1alpha1"


class _NoDiffBase(kopf.DiffBaseStorage):
    """kopf must not write what it last saw into the objects: we only take events.

    Nor make it: that is a deep copy of each event's object, and was more than half of what an event cost.
    """

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None


class _NoProgress(kopf.ProgressStorage):
    """kopf must not write handlers' progress into the objects: our handlers have none."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None

    def purge(self, **_: Any) -> None:
        return None

    def touch(self, **_: Any) -> None:
        return None

    def clear(self, *, essence: Any) -> Any:
        return essence


class _Endless(Iterable[float]):
    """kopf gives up after as many tries as there are delays, and the operator would end with it, its caches lost, in
    an outage of a minute."""

    def __iter__(self) -> Iterator[float]:
        yield from (0.2, 0.5, 1.0, 2.0)
        while True:
            yield 5.0


def settings() -> kopf.OperatorSettings:
    chosen = kopf.OperatorSettings()
    chosen.persistence.diffbase_storage = _NoDiffBase()
    chosen.persistence.progress_storage = _NoProgress()
    chosen.queueing.idle_timeout = 0.2
    chosen.queueing.worker_limit = None
    chosen.scanning.disabled = True
    chosen.posting.enabled = False
    chosen.watching.chunk_size = 500
    chosen.networking.error_backoffs = _Endless()
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    return chosen


def registry(
    schedules: Observer,
    templates: Observer,
    relisted: Callable[[], None],
    cleanup: Callable[[], Awaitable[None]],
) -> kopf.OperatorRegistry:
    """`relisted` is called when kopf has listed anew, which hides what vanished. `cleanup` is awaited on shutdown,
    before kopf cancels every task that began after it did: ours too."""
    chosen = kopf.OperatorRegistry()

    def feed(observe: Observer, event: Any, memo: Any) -> None:
        # A listing's events have no type; the memo is the object's own, as long as kopf knows it.
        if event["type"] is None and memo.get("fed"):
            relisted()
        memo["fed"] = True
        observe(event["object"], deleted=event["type"] == "DELETED")

    async def on_schedule(event: Any, memo: Any, **_: Any) -> None:
        feed(schedules, event, memo)

    async def on_template(event: Any, memo: Any, **_: Any) -> None:
        feed(templates, event, memo)

    async def on_cleanup(**_: Any) -> None:
        await cleanup()

    kopf.on.event(GROUP, VERSION, SCHEDULES.plural, registry=chosen)(on_schedule)
    kopf.on.event(GROUP, VERSION, TEMPLATES.plural, registry=chosen)(on_template)
    kopf.on.login(registry=chosen)(_login)
    kopf.on.cleanup(registry=chosen)(on_cleanup)
    return chosen


_MOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def _login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    """As our own client does it; kopf's way into the cluster it is in would need a working DNS."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    token = _MOUNT / "token"
    if not host or not port or not token.exists():
        return kopf.login_with_kubeconfig(**kwargs)
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return kopf.ConnectionInfo(server=server, ca_path=str(_MOUNT / "ca.crt"), token=token.read_text().strip())
