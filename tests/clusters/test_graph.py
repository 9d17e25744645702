from __future__ import annotations

import threading

import pytest

from raykueue.clusters.graph import Step, run

SECONDS = 10


def nothing() -> None:
    """No step fails here."""


def test_steps_run_after_those_that_they_name_and_beside_the_others() -> None:
    done: list[str] = []
    side_by_side = threading.Barrier(2, timeout=SECONDS)

    def do(name: str, *, wait: bool = False) -> Step:
        def step() -> None:
            if wait:
                side_by_side.wait()
            done.append(name)

        return Step(step, {"b": ["a"], "c": ["a"], "d": ["b", "c"]}.get(name, []))

    steps = {"d": do("d"), "c": do("c", wait=True), "b": do("b", wait=True), "a": do("a")}
    timings = run(steps, nothing)
    assert (done[0], done[-1], len(done)) == ("a", "d", 4)
    assert timings[0].name == "a"
    assert all(timing.begin <= timing.end for timing in timings)


def test_the_first_failure_is_raised_and_what_waits_for_it_is_not_begun() -> None:
    begun: list[str] = []

    def fail() -> None:
        raise RuntimeError("no etcd")

    steps = {"etcd": Step(fail), "api": Step(lambda: begun.append("api"), ["etcd"])}
    with pytest.raises(RuntimeError, match="no etcd"):
        run(steps, nothing)
    assert begun == []


def test_a_failure_makes_those_give_up_that_still_run() -> None:
    given_up = threading.Event()
    waiting = threading.Event()
    ended: list[str] = []

    def fail() -> None:
        assert waiting.wait(SECONDS)
        raise RuntimeError("no etcd")

    def wait() -> None:
        waiting.set()
        assert given_up.wait(SECONDS)
        ended.append("kwok")
        raise ValueError("the keeper is gone")  # only a consequence: not the error to tell

    with pytest.raises(RuntimeError, match="no etcd"):
        run({"etcd": Step(fail), "kwok": Step(wait)}, given_up.set)
    assert ended == ["kwok"]


def test_an_interrupt_makes_those_give_up_that_still_run(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = threading.Event()

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("raykueue.clusters.graph.wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run({"etcd": Step(lambda: given_up.wait(SECONDS))}, given_up.set)
    assert given_up.is_set()


@pytest.mark.parametrize(("after", "message"), [("nobody", "which are no steps"), ("etcd", "cycle")])
def test_a_step_that_could_never_begin_is_refused(after: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run({"etcd": Step(nothing, [after])}, nothing)
