"""Who is let in with whom: by example, and in any order of requests, releases, deaths and failed changes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykueue.controllers.settings import DEFAULT, Settings
from raykueue.errors import ClusterError
from raykueue.run.lease import PATIENCE, Leases

GATED = Settings(kuberay_gates={"A": True})
OTHER = Settings(kuberay_gates={"B": True})


class Controllers:
    """Take settings over, one change at a time, and say what they were given."""

    def __init__(self) -> None:
        self.given: list[Settings] = []
        self.fails = 0
        self.go = asyncio.Event()
        self.go.set()

    async def change(self, settings: Settings) -> None:
        self.given.append(settings)
        await self.go.wait()
        if self.fails:
            self.fails -= 1
            raise ClusterError("it does not start")


async def turns(count: int = 20) -> None:
    """Lets everybody go as far as they can."""
    for _ in range(count):
        await asyncio.sleep(0)


def begin(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)


async def given_up(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(10):
            await work

    asyncio.run(limited())


def test_who_wants_the_same_is_together() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        await leases.take("a")
        await leases.take("b")
        gated = [begin(leases.take(name, GATED)) for name in ("c", "d")]
        await leases.release("a")
        await turns()
        assert not any(task.done() for task in gated)
        await leases.release("b")
        await asyncio.gather(*gated)
        late = begin(leases.take("e", Settings(kuberay_gates={"A": True})))
        await turns()
        assert late.done()
        assert controllers.given == [GATED]

    run(scenario())


@pytest.mark.parametrize("wanted", [DEFAULT, GATED])
def test_who_ends_components_is_alone(wanted: Settings) -> None:
    async def scenario() -> None:
        leases = Leases(Controllers().change)
        await leases.take("a", wanted)
        fault = begin(leases.take("f", wanted, alone=True))
        await turns()
        assert not fault.done()
        await leases.release("a")
        await fault
        others = [begin(leases.take("b", wanted)), begin(leases.take("g", wanted, alone=True))]
        await turns()
        assert not any(task.done() for task in others)
        await leases.release("f")
        await others[0]
        assert not others[1].done()
        await leases.release("b")
        await others[1]

    run(scenario())


def test_who_wants_what_is_in_force_goes_before_who_does_not() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        await leases.take("a")
        wishes = {"g": GATED, "b": DEFAULT, "o": OTHER, "h": GATED, "c": DEFAULT}
        tasks = {name: begin(leases.take(name, wanted)) for name, wanted in wishes.items()}
        for names in ("bc", "gh", "o"):
            await turns()
            assert {name for name, task in tasks.items() if task.done()} == set(names)
            for name in (*names, "a"):
                await leases.release(name)
                tasks.pop(name, None)
        assert controllers.given == [GATED, OTHER]

    run(scenario())


def test_who_waits_is_passed_by_so_often_and_no_more() -> None:
    async def scenario() -> None:
        leases = Leases(Controllers().change)
        await leases.take("first")
        waiting = begin(leases.take("w", GATED))
        tasks = [begin(leases.take(number)) for number in range(PATIENCE + 2)]
        await turns()
        assert [task.done() for task in tasks] == [True] * PATIENCE + [False, False]
        for holder in ("first", *range(PATIENCE)):
            await leases.release(holder)
        await waiting
        assert not any(task.done() for task in tasks[PATIENCE:])
        await leases.release("w")
        await asyncio.gather(*tasks)

    run(scenario())


def test_the_more_wait_the_fewer_pass_by() -> None:
    async def scenario() -> None:
        leases = Leases(Controllers().change)
        await leases.take("first")
        waiting = [begin(leases.take(f"w{number}", GATED)) for number in range(4)]
        tasks = [begin(leases.take(number)) for number in range(PATIENCE)]
        await turns()
        assert sum(task.done() for task in tasks) == PATIENCE // 4
        for task in (*waiting, *tasks):
            task.cancel()

    run(scenario())


def test_settings_change_once_for_equal_ones_and_come_back_with_the_next_who_wants_the_default() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        await leases.take("a")
        await leases.release("a")
        for wanted in (GATED, Settings(kuberay_gates={"A": True}), OTHER):
            await leases.take("w", wanted)
            await leases.release("w")
        assert controllers.given == [GATED, OTHER]
        await asyncio.gather(*(leases.take(name) for name in ("a", "b", "c")))
        assert controllers.given == [GATED, OTHER, DEFAULT]

    run(scenario())


def test_nobody_runs_before_a_change_is_over() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        controllers.go.clear()
        tasks = [begin(leases.take(name, GATED)) for name in ("w", "x")]
        tasks.append(begin(leases.take("a")))
        await turns()
        assert not any(task.done() for task in tasks)
        controllers.go.set()
        await asyncio.gather(*tasks[:2])
        await turns()
        assert not tasks[2].done()
        await given_up(tasks[2])

    run(scenario())


def test_a_holder_that_is_dropped_holds_nobody_up() -> None:
    async def scenario() -> None:
        leases = Leases(Controllers().change)
        await leases.take("a")
        await leases.release("a")
        await leases.release("a")
        await leases.release("never had one")
        await leases.take("w", alone=True)
        other = begin(leases.take("b"))
        await leases.release("somebody else")
        await turns()
        assert not other.done()
        await leases.release("w")
        await other

    run(scenario())


def test_who_gives_up_waiting_lets_others_go_on() -> None:
    async def scenario() -> None:
        leases = Leases(Controllers().change)
        await leases.take("f", alone=True)
        waiting = [begin(leases.take(name, alone=alone)) for name, alone in (("g", True), ("a", False), ("b", False))]
        await turns()
        await given_up(waiting[0])
        await given_up(waiting[1])
        await leases.release("f")
        await waiting[2]
        await leases.release("b")
        await leases.take("h", alone=True)

    run(scenario())


def test_a_change_that_fails_lets_others_go_on_who_do_not_trust_what_is_in_force() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        controllers.fails = 1
        with pytest.raises(ClusterError, match="it does not start"):
            await leases.take("w", GATED)
        await leases.take("a")
        # The default settings were in force before; whether they still are is not known.
        assert controllers.given == [GATED, DEFAULT]
        await leases.take("b")
        assert controllers.given == [GATED, DEFAULT]

    run(scenario())


def test_a_change_whose_asker_is_gone_is_waited_for_and_counts() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        controllers.go.clear()
        first = begin(leases.take("w", GATED))
        await turns()
        first.cancel()
        next_one = begin(leases.take("x", GATED))
        await turns()
        assert not next_one.done()
        controllers.go.set()
        await next_one
        assert first.cancelled()
        assert controllers.given == [GATED]

    run(scenario())


def test_a_change_whose_asker_is_gone_before_it_begins_is_not_made() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        await leases.take("a")
        first = begin(leases.take("w", GATED))
        await turns()
        await leases.release("a")
        first.cancel()
        await leases.take("b")
        assert first.cancelled()
        assert controllers.given == []

    run(scenario())


def test_a_way_back_to_the_default_that_fails_is_tried_again_by_the_next() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        await leases.take("w", GATED)
        await leases.release("w")
        controllers.fails = 1
        with pytest.raises(ClusterError):
            await leases.take("a")
        await leases.take("b")
        assert controllers.given == [GATED, DEFAULT, DEFAULT]

    run(scenario())


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
