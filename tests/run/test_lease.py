"""Who is let in with whom: by example."""

from __future__ import annotations

import asyncio

import pytest

from raykueue.controllers.settings import DEFAULT, Settings
from raykueue.errors import ClusterError
from raykueue.run.lease import PATIENCE, Leases
from tests.run.leases import GATED, OTHER, Controllers, begin, given_up, run, turns


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
