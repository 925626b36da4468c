"""Single slots are told from the crowd, by name, namespace and place."""

from __future__ import annotations

from hack.bench.fair import Fairness
from hack.bench.lab.manifests import JOBS, NAMESPACE, within
from hack.bench.lab.racing import Course, fires_of


def test_fairness_is_the_last_single_slot_against_the_crowds_last() -> None:
    figures = Fairness.of(crowd=[0.1 * number for number in range(1, 21)], singles=[0.3, 0.5, 0.1])
    assert (figures.crowd_p50, figures.crowd_p99, figures.crowd_last) == (1.0, 2.0, 2.0)
    assert (figures.singles_p50, figures.singles_last, figures.ratio) == (0.3, 0.5, 0.25)


def test_each_lone_slot_is_in_a_namespace_of_its_own_and_comes_after_the_crowd() -> None:
    fires = fires_of(Course(rate=3, lone=2), first=100, step=1)
    assert [fire.namespace == NAMESPACE for fire in fires] == [True, True, True, False, False]
    assert len({fire.namespace for fire in fires}) == 3
    assert len({fire.name for fire in fires}) == 5
    assert {fire.slot for fire in fires} == {100}


def test_a_collection_has_the_same_path_in_another_namespace() -> None:
    assert within("other", JOBS) == "/apis/batch/v1/namespaces/other/jobs"
