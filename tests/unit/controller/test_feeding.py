"""kopf as a feed: it neither gives up nor hides that it has listed anew."""

from __future__ import annotations

from itertools import islice
from typing import Any

import kopf

from cronwright.cluster.port import Json
from cronwright.controller import feeding


def test_an_outage_of_hours_does_not_end_the_operator() -> None:
    backoffs: Any = feeding.settings().networking.error_backoffs
    for _ in range(2):  # kopf begins anew for every request
        delays = list(islice(backoffs, 10_000))
        assert len(delays) == 10_000
        assert max(delays) <= 5


async def test_a_listing_tells_that_it_is_not_the_first_one() -> None:
    seen: list[tuple[str, bool]] = []
    relists: list[None] = []

    def observe(obj: Json, *, deleted: bool = False) -> None:
        seen.append((obj["name"], deleted))

    async def cleanup() -> None:
        return None

    registry = feeding.registry(observe, observe, lambda: relists.append(None), cleanup)
    handlers = {h.selector.any_name: h.fn for h in registry._watching._handlers if h.selector}
    handle: Any = handlers["taskschedules"]
    a, b = kopf.Memo(), kopf.Memo()
    for memo, kind, name in ((a, None, "a"), (b, "ADDED", "b"), (a, "MODIFIED", "a"), (a, "DELETED", "a")):
        await handle(event={"type": kind, "object": {"name": name}}, memo=memo)
    assert relists == []
    await handle(event={"type": None, "object": {"name": "b"}}, memo=b)
    assert len(relists) == 1
    assert seen == [("a", False), ("b", False), ("a", False), ("a", True), ("b", False)]


def test_kopf_copies_no_object() -> None:
    """It would for the difference that it stores, were there any: more than half of what an event cost."""
    storage = feeding.settings().persistence.diffbase_storage
    body: Any = {"spec": {"a": 1}}
    assert storage.build(body=body) == {}
