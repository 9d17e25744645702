"""Over generated scenes: the documented heuristic, written down again, against the model."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from raykueue.audit.preemption import Decision
from tests.audit.scenes import Scene

Held = tuple[int, int]
"""(priority, CPU)."""


def lowest(held: list[Held], free: int, wanted: int) -> set[int]:
    """The choice by the documented heuristic: lowest and youngest first until it fits, then back what is not needed."""
    order = sorted(range(len(held)), key=lambda i: (held[i][0], -i))
    taken: list[int] = []
    for one in order:
        if free + sum(held[i][1] for i in taken) >= wanted:
            break
        taken.append(one)
    for one in taken[-2::-1]:
        if free + sum(held[i][1] for i in taken if i != one) >= wanted:
            taken.remove(one)
    return set(taken)


def played(held: list[Held], free: int, wanted: int, victims: Iterable[int]) -> Decision:
    scene = Scene()
    q = scene.queue(cpu=sum(cpu for _, cpu in held) + free)
    for number, (priority, cpu) in enumerate(held):
        scene.holds(f"j{number}", q, cpu, priority)
    scene.waits("high", q, wanted, 9)
    scene.tick(2)
    scene.preempt("high", *(f"j{i}" for i in victims))
    return scene.only()


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=6),
    st.integers(0, 3),
    st.integers(1, 12),
    st.data(),
)
def test_one_set_of_victims_is_right_and_every_other_is_wrong(
    held: list[Held], free: int, wanted: int, data: st.DataObject
) -> None:
    assume(free < wanted <= free + sum(cpu for _, cpu in held))
    expected = lowest(held, free, wanted)
    found = played(held, free, wanted, sorted(expected))
    assert (found.verdict, found.reasons) == ("right", ())
    other = data.draw(st.sets(st.integers(0, len(held) - 1), min_size=1))
    assert (played(held, free, wanted, sorted(other)).verdict == "right") == (other == expected)


def reclaimed(owned: list[Held], borrowed: list[Held], quota: int, wanted: int) -> set[str]:
    """The same for a Workload within its own quota: from who borrows first, as long as they do, then from its own."""
    free = 2 * quota - sum(cpu for _, cpu in [*owned, *borrowed])
    given, order = sum(cpu for _, cpu in borrowed), []
    for i in sorted(range(len(borrowed)), key=lambda i: (borrowed[i][0], -i)):
        if given > quota:
            order.append((f"b{i}", borrowed[i][1]))
            given -= borrowed[i][1]
    order += [(f"o{i}", owned[i][1]) for i in sorted(range(len(owned)), key=lambda i: (owned[i][0], -i))]
    taken: list[tuple[str, int]] = []
    for one in order:
        if free + sum(cpu for _, cpu in taken) >= wanted:
            break
        taken.append(one)
    for one in taken[-2::-1]:
        if free + sum(cpu for name, cpu in taken if name != one[0]) >= wanted:
            taken.remove(one)
    return {name for name, _ in taken} if free + sum(cpu for _, cpu in taken) >= wanted else set()


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=3),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=5),
    st.integers(1, 4),
)
def test_what_is_reclaimed_by_the_documented_order_is_right(
    owned: list[Held], borrowed: list[Held], wanted: int
) -> None:
    quota = max(sum(cpu for _, cpu in owned) + wanted, (sum(cpu for _, cpu in [*owned, *borrowed]) + 1) // 2)
    expected = reclaimed(owned, borrowed, quota, wanted)
    assume(expected)
    scene = Scene()
    owner = scene.queue("owner", quota, reclaim="Any", cohort="all")
    borrower = scene.queue("borrower", quota, cohort="all")
    for letter, held, queue in (("o", owned, owner), ("b", borrowed, borrower)):
        for number, (priority, cpu) in enumerate(held):
            scene.holds(f"{letter}{number}", queue, cpu, priority)
    scene.waits("high", owner, wanted, 9)
    scene.tick(2)
    scene.preempt("high", *sorted(expected))
    found = scene.only()
    assert (found.verdict, found.reasons) == ("right", ())
