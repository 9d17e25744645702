from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raykueue.audit.bands import VALUE, Band
from raykueue.model.events import Moment

SETTLE, AHEAD = 30, 10

Steps = list[tuple[int, int, int]]


def in_force(steps: list[tuple[int, int]], t: int) -> int:
    return [value for at, value in [(-(10**9), 0), *steps] if at <= t][-1]


def values(steps: list[tuple[int, int]], start: int, end: int) -> list[int]:
    return [in_force(steps, start), *(value for at, value in steps if start < at <= end)]


def outside(truth: Steps, published: list[tuple[int, int]], t: int) -> str:
    """By the definition, word for word."""
    seen = [value for at, value in published if at <= t]
    if not seen:
        return ""
    steps = [(at, value) for at, value, _ in truth]
    low = min(values(steps, t - SETTLE, t + AHEAD))
    high = max(values(steps, t - SETTLE, t)) + sum(b for at, _, b in truth if t < at <= t + AHEAD)
    return "over" if seen[-1] > high else "under" if seen[-1] < low else ""


pairs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5)), max_size=12)


@given(pairs, pairs, st.sets(st.integers(0, 200), max_size=6))
def test_a_band_decides_as_its_definition_says_whenever_it_is_asked(
    truth_steps: list[tuple[int, int]], published_steps: list[tuple[int, int]], asked: set[int]
) -> None:
    truth: Steps = []
    t = value = 0
    for pause, new in truth_steps:
        t += pause
        if new != value:
            truth.append((t, new, max(0, new - value)))
            value = new
    published: list[tuple[int, int]] = []
    t = 0
    for pause, new in published_steps:
        t += pause
        published.append((t, new))

    band = Band(SETTLE, AHEAD)
    changes = sorted(
        [(at, 0, n) for n, (at, _, _) in enumerate(truth)] + [(at, 1, n) for n, (at, _) in enumerate(published)]
    )
    ticks = sorted(asked)
    for rev, (at, which, n) in enumerate(changes):
        while ticks and ticks[0] <= at:
            band.advance(ticks.pop(0))
        moment = Moment(rev, at)
        if which == 0:
            band.set_truth(moment, truth[n][1], truth[n][2])
        else:
            band.publish(moment, published[n][1])
    end = 400
    assert not band.advance(end + AHEAD)

    runs = [*band.ended, *([band.run] if band.run else [])]
    for t in range(-AHEAD, end):
        inside = [r for r in runs if r.window.begin.t <= t and (r.window.end is None or t < r.window.end.t)]
        assert len(inside) == bool(outside(truth, published, t)), t
    for run in runs:
        assert run.side == outside(truth, published, run.window.begin.t)
        assert run.window.peak[VALUE] == abs(run.published - run.truth) > 0
