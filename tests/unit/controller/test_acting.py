"""What is sent to the API server, where it can be said without one."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.unit.core.views import T, claim, ledger, schedule, template, view

from cronwright.cluster.port import Cluster, Unavailable
from cronwright.controller.acting import Actor, merge_patch
from cronwright.controller.store import Store
from cronwright.core.decide import decide


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386, as the API server applies it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"a": 1}),
        ({"a": 1}, {}),
        ({"skip": {"slot": "x", "message": "m"}}, {"skip": {"slot": "y"}}),
        ({"skips": {"a": 1, "b": 2}}, {"skips": {"b": 3}}),
        ({"list": [{"a": 1}]}, {"list": [{"b": 1}]}),
        ({"map": {"deep": {"a": 1, "b": 1}}}, {"map": {"deep": {"a": 1}}}),
        ({"was": {"a": 1}}, {"was": "text"}),
    ],
)
def test_a_merge_patch_makes_the_new_of_the_old(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert merged(old, merge_patch(old, new)) == new


def test_a_map_that_changed_is_whole_even_where_somebody_has_wiped_it() -> None:
    """Half a `lastSkip` is refused by the API server, and all that would have been written with it."""
    new = {"lastSkip": {"slot": "b", "reason": "Forbidden"}}
    assert merged({}, merge_patch({"lastSkip": {"slot": "a", "reason": "Forbidden"}}, new)) == new


def test_what_is_the_same_is_not_sent() -> None:
    assert merge_patch({"a": {"b": 1}, "c": [1]}, {"a": {"b": 1}, "c": [1]}) == {}


class InTrouble:
    """An API server that answers everything with an error of its own."""

    async def create(self, *_: Any, **__: Any) -> Any:
        raise Unavailable("503: etcdserver: request timed out")


async def test_an_api_server_in_trouble_costs_no_attempt() -> None:
    of, store = schedule(), Store()
    actor = Actor(cast(Cluster, InTrouble()), store, lambda: T, "me")
    decision = decide(view(of))
    job = await actor.job(of, template(), decision.ledger, decision.starts[0])
    with pytest.raises(Unavailable):
        await actor.create(of, template(), decision.starts[0], job)
    assert store.runs[of.uid] == {}, "no attempt has been made"
    later = decide(view(of, known=ledger(of, claim(0), watermark=T), now=30))
    assert later.starts == decision.starts, "and it is made when the API server is back"
