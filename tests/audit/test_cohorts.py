from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykueue.audit.cohorts import CLUSTER_QUEUE, COHORT, CohortCycle, NodeId, QuotaTree
from raykueue.model.queues import Quota, QuotaSpec

KEY = ("default", "cpu")


def spec(nominal: int = 0, parent: str = "", borrowing: int | None = None, lending: int | None = None) -> QuotaSpec:
    return QuotaSpec(parent, {KEY: Quota(nominal, borrowing, lending)})


def cq(name: str) -> NodeId:
    return CLUSTER_QUEUE, name


def cohort(name: str) -> NodeId:
    return COHORT, name


def available(tree: QuotaTree, name: str) -> int:
    return tree.available(cq(name), KEY)


def test_vector_1_queues_of_a_cohort_share_what_is_left() -> None:
    tree = QuotaTree()
    tree.define(cq("a"), spec(4, "co"))
    tree.define(cq("b"), spec(4, "co"))
    tree.add("a", KEY, 7)
    assert (available(tree, "a"), available(tree, "b")) == (1, 1)
    tree.add("b", KEY, 2)
    assert (available(tree, "a"), available(tree, "b")) == (-1, -1)
    assert tree.over_use("b", KEY) == {cohort("co"): 1}


def test_vector_2_limits_of_borrowing_and_lending() -> None:
    tree = QuotaTree()
    tree.define(cq("a"), spec(4, "co", borrowing=2))
    tree.define(cq("b"), spec(4, "co", lending=1))
    assert tree.subtree(cohort("co"), KEY) == 5
    assert tree.local(cq("b"), KEY) == 3
    assert available(tree, "a") == 5
    tree.add("a", KEY, 5)
    tree.add("b", KEY, 3)
    assert (available(tree, "a"), available(tree, "b")) == (0, 0)
    tree.add("b", KEY, 1)
    assert tree.over_use("b", KEY) == {cohort("co"): 1}


def two_levels() -> QuotaTree:
    tree = QuotaTree()
    tree.define(cohort("root"), spec(2))
    tree.define(cohort("left"), spec(0, "root", borrowing=1))
    tree.define(cohort("right"), spec(0, "root", lending=3))
    tree.define(cq("a"), spec(3, "left"))
    tree.define(cq("b"), spec(5, "right"))
    return tree


def test_vector_3_two_levels() -> None:
    tree = two_levels()
    assert (available(tree, "a"), available(tree, "b")) == (4, 10)
    tree.add("a", KEY, 4)
    tree.add("b", KEY, 7)
    assert tree.use(cohort("root"), KEY) == 9
    assert tree.subtree(cohort("root"), KEY) == 8
    assert tree.over_use("b", KEY) == {cohort("root"): 1}


def test_vector_4_a_queue_alone_may_not_borrow() -> None:
    tree = QuotaTree()
    tree.define(cq("a"), spec(3))
    tree.add("a", KEY, 4)
    assert available(tree, "a") == -1
    assert tree.over_use("a", KEY) == {cq("a"): 1}


def test_over_use_beyond_a_borrowing_limit_is_located_at_its_node() -> None:
    tree = QuotaTree()
    tree.define(cq("a"), spec(4, "co", borrowing=2))
    tree.define(cq("b"), spec(9, "co"))
    tree.add("a", KEY, 7)
    assert tree.over_use("a", KEY) == {cq("a"): 1}


def test_a_queue_that_moves_to_another_cohort_takes_its_use_along() -> None:
    tree = two_levels()
    tree.add("a", KEY, 4)
    tree.define(cq("a"), spec(3, "other"))
    assert tree.use(cohort("root"), KEY) == 0
    assert available(tree, "a") == -1


def test_a_deleted_cohort_object_is_still_a_cohort_by_name_but_without_its_own_quota() -> None:
    tree = QuotaTree()
    tree.define(cohort("co"), spec(2))
    tree.define(cq("a"), spec(1, "co"))
    assert available(tree, "a") == 3
    tree.define(cohort("co"), None)
    assert available(tree, "a") == 1


def test_a_cycle_of_cohorts_has_no_arithmetic_until_it_is_broken() -> None:
    tree = QuotaTree()
    tree.define(cohort("x"), spec(1, "y"))
    tree.define(cohort("y"), spec(1, "x"))
    tree.define(cq("a"), spec(1, "x"))
    tree.add("a", KEY, 1)
    with pytest.raises(CohortCycle, match="form a cycle"):
        available(tree, "a")
    with pytest.raises(CohortCycle, match="form a cycle"):
        tree.path("a")
    tree.define(cohort("y"), spec(1))
    assert available(tree, "a") == 2


def test_what_is_gone_and_unused_is_dropped() -> None:
    tree = two_levels()
    for name in ("a", "b"):
        tree.define(cq(name), None)
    for name in ("left", "right", "root"):
        tree.define(cohort(name), None)
    assert tree._nodes == {}


limits = st.none() | st.integers(0, 6)
leaves = st.tuples(st.integers(0, 8), limits, limits, st.sampled_from(["", "left", "right", "root"]))


@given(
    st.lists(leaves, min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), max_size=12),
    st.tuples(limits, limits, limits, limits),
)
def test_adding_use_step_by_step_is_the_same_as_summing_it_up(
    queues: list[tuple[int, int | None, int | None, str]],
    uses: list[tuple[int, int]],
    cohort_limits: tuple[int | None, int | None, int | None, int | None],
) -> None:
    def build() -> QuotaTree:
        tree = QuotaTree()
        tree.define(cohort("root"), spec(2))
        tree.define(cohort("left"), spec(1, "root", cohort_limits[0], cohort_limits[1]))
        tree.define(cohort("right"), spec(0, "root", cohort_limits[2], cohort_limits[3]))
        for n, (nominal, borrowing, lending, parent) in enumerate(queues):
            tree.define(cq(str(n)), spec(nominal, parent, borrowing, lending))
        return tree

    stepwise = build()
    for n in range(len(queues)):
        available(stepwise, str(n))
    total: dict[str, int] = {}
    for n, value in uses:
        name = str(n % len(queues))
        stepwise.add(name, KEY, value)
        total[name] = total.get(name, 0) + value
    for name, value in list(total.items())[::2]:
        stepwise.add(name, KEY, -value)
        total[name] = 0
    at_once = QuotaTree()
    for name, value in total.items():
        at_once.add(name, KEY, value)
    fresh = build()
    for node, entry in fresh._nodes.items():
        at_once.define(node, entry.spec)
    for n in range(len(queues)):
        assert available(stepwise, str(n)) == available(at_once, str(n))
        assert stepwise.over_use(str(n), KEY) == at_once.over_use(str(n), KEY)


@given(st.integers(0, 9), st.integers(0, 9), limits, limits, st.integers(0, 9), st.integers(0, 9))
def test_what_fits_by_available_leaves_nobody_on_the_way_over(
    a: int, b: int, borrowing: int | None, lending: int | None, use_b: int, use_a: int
) -> None:
    tree = QuotaTree()
    tree.define(cq("a"), spec(a, "co", borrowing))
    tree.define(cq("b"), spec(b, "co", None, lending))
    tree.add("b", KEY, min(use_b, max(0, available(tree, "b"))))
    tree.add("a", KEY, min(use_a, max(0, available(tree, "a"))))
    assert tree.over_use("a", KEY) == {}
    assert tree.over_use("b", KEY) == {}
