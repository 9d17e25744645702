"""Who is let in with whom: in any order of requests, releases, deaths and failed changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from raykueue.controllers.settings import DEFAULT, Settings
from raykueue.run.lease import PATIENCE, Leases
from tests.run.leases import GATED, OTHER, Controllers, begin, run, turns


@dataclass
class Test:
    """One holder in a generated story."""

    __test__ = False

    number: int
    wants: Settings
    alone: bool
    task: asyncio.Task[None]
    released: bool = False

    @property
    def holds(self) -> bool:
        return self.task.done() and not self.released and not self.task.cancelled() and self.task.exception() is None


@dataclass
class Story:
    """Requests and releases as they come, and what must be so whatever they are."""

    controllers: Controllers = field(default_factory=Controllers)
    tests: list[Test] = field(default_factory=list)
    granted: list[Test] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.leases = Leases(self._change)
        self.in_force: Settings | None = DEFAULT

    async def _change(self, wanted: Settings) -> None:
        assert not any(test.holds for test in self.tests), "settings change under a test"
        self.in_force = None
        await self.controllers.change(wanted)
        self.in_force = wanted

    def ask(self, wants: Settings, alone: bool) -> None:
        number = len(self.tests)
        self.tests.append(Test(number, wants, alone, begin(self.leases.take(number, wants, alone=alone))))

    async def release(self, test: Test) -> None:
        test.released = True
        if not test.task.done():
            test.task.cancel()  # it died while it waited, or while its settings were put into force
        await self.leases.release(test.number)

    async def look(self) -> None:
        await turns()
        self.granted += [test for test in self.tests if test.holds and test not in self.granted]
        holding = [test for test in self.tests if test.holds]
        assert len({test.wants.key() for test in holding}) <= 1, "two settings at once"
        assert all(test.wants == self.in_force for test in holding), "not with the settings that it wants"
        assert len(holding) == 1 or not any(test.alone for test in holding), "not alone"

    def passed_by(self, test: Test) -> int:
        """So many that came after it were let in before it."""
        before = self.granted[: self.granted.index(test)] if test in self.granted else self.granted
        return sum(other.number > test.number for other in before)

    async def end(self) -> None:
        """Everybody who holds lets go, until nobody is left."""
        self.controllers.go.set()
        for _ in range(2 * len(self.tests)):
            await self.look()
            if not (holding := [test for test in self.tests if test.holds]):
                break
            for test in holding:
                await self.release(test)
        assert all(test.task.done() for test in self.tests), "somebody starves"
        assert all(self.passed_by(test) <= PATIENCE for test in self.granted)


ASK = st.tuples(st.just("ask"), st.sampled_from([DEFAULT, GATED, OTHER]), st.booleans())
STEPS = st.lists(
    st.one_of(
        ASK,
        ASK,
        st.tuples(st.just("release"), st.integers(0, 40)),
        st.tuples(st.sampled_from(["stall", "go on", "fail", "look"])),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(STEPS)
def test_whatever_happens_no_two_settings_meet_faults_are_alone_and_nobody_starves(
    steps: Sequence[tuple[Any, ...]],
) -> None:
    async def scenario() -> None:
        story = Story()
        for step in steps:
            match step:
                case ("ask", wants, alone):
                    story.ask(wants, alone)
                case ("release", number) if number < len(story.tests):
                    await story.release(story.tests[number])
                case ("stall",):
                    story.controllers.go.clear()
                case ("go on",):
                    story.controllers.go.set()
                case ("fail",):
                    story.controllers.fails = 1
                case ("look",):
                    await story.look()
        await story.end()
        await asyncio.gather(*(test.task for test in story.tests), return_exceptions=True)

    run(scenario())


def changes(wishes: Sequence[Settings], processes: int) -> int:
    """How often settings change if each process has one test after another, and the one that came first ends first."""
    story = Story()

    async def scenario() -> None:
        queue = list(wishes)
        while queue or not all(test.released for test in story.tests):
            while queue and sum(not test.released for test in story.tests) < processes:
                story.ask(queue.pop(0), alone=False)
            await story.look()
            await story.release(next(test for test in story.tests if test.holds))

    run(scenario())
    return len(story.controllers.given)


@settings(deadline=None)
@given(st.lists(st.sampled_from([DEFAULT, GATED, OTHER]), max_size=40), st.integers(1, 8))
def test_settings_never_change_more_often_than_in_order_of_arrival(wishes: list[Settings], processes: int) -> None:
    assert changes(wishes, processes) <= sum(one != other for one, other in pairwise([DEFAULT, *wishes]))


def test_mixed_requests_change_settings_few_times() -> None:
    wishes = [DEFAULT, GATED] * 20
    assert changes(wishes, processes=1) == 39
    assert changes(wishes, processes=8) <= 10
