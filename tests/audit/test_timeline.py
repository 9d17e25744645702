from __future__ import annotations

import pytest

from raykueue.audit.replay import replay, steps
from raykueue.audit.timeline import LINES, timelines
from raykueue.model.events import Header, Record
from raykueue.model.findings import Finding
from tests.audit.journals import EPOCH, PAIR, Job, Journal, Pod, Queue


def records(j: Journal) -> list[Record]:
    return [Header(EPOCH, pair=PAIR), *j.arrivals()]


def story(j: Journal, rule: str, width: int = 100) -> tuple[Finding, list[str]]:
    """The one finding of a rule, and its timeline; the numbers' columns have one blank between them."""
    listed = records(j)
    (found,) = (one for one in replay(listed).unscoped([]) if one.rule == rule)
    return found, [*timelines([found], steps(listed), width)[found.id]]


def survivor(pause: float = 4.0) -> tuple[Journal, Queue, Job, Pod]:
    """W- at 10 s, and its head goes so many seconds later."""
    j = Journal()
    q = j.at(0).queue(cpu=3)
    q.books(0, 0)
    a = j.job("a", q)
    a.workload.admit()
    head, *others = a.start()
    q.books(2.5, 2.5)
    j.at(5)
    for pod in others:
        pod.end()
    j.at(8).job("early", q)
    j.at(9.5)
    a.suspend(True)
    a.workload.evict()
    a.state("Suspended")
    head.terminate()
    j.at(10)
    a.workload.release()
    j.at(10.9)
    q.books(0, 0)
    j.at(10 + pause)
    head.gone()
    j.at(13.9 + pause).marker("the end")
    return j, q, a, head


def test_a_survivors_story_has_quota_booked_charged_and_demand_at_each_change() -> None:
    j, _, _, _ = survivor()
    found, lines = story(j, "no-survivors")
    assert (found.begin.t, found.end and found.end.t) == (EPOCH + 10 * 10**9, EPOCH + 14 * 10**9)
    assert lines == [
        "       ms  quota/booked/charged/demand",
        "           CPU",
        "     -500  3/2.5/2.5/1  RayJob a: suspend true",
        "     -500  3/2.5/2.5/1  Workload rayjob-a-1: Evicted (Preempted)",
        "     -500  3/2.5/2.5/1  RayJob a: Suspended",
        "     -500  3/2.5/2.5/1  head pod a-head-1: deletion asked for",
        ">       0  3/2.5/0/1    Workload rayjob-a-1: QuotaReserved False (Test), Admitted False (Test)",
        ">     900  3/0/0/1      ClusterQueue: CPU usage 2.5 → 0, CPU reservation 2.5 → 0",
        ">    4000  3/0/0/0      head pod a-head-1: deleted",
    ]


def test_what_happened_more_than_two_seconds_away_or_to_others_is_left_out() -> None:
    j, q, _, _ = survivor()
    other = Journal()
    other.uids, other.rev, other.now = 500, j.rev, j.now
    _, lines = story(j, "no-survivors")
    assert not any("created" in line or "early" in line for line in lines)
    foreign = Queue(other, "other", cpu=9)
    foreign.books(1, 1)
    j.records += other.records
    assert story(j, "no-survivors")[1] == lines
    assert q.name == "cq"


def test_a_heir_of_the_quota_is_seen_in_the_same_story() -> None:
    j, q, _, head = survivor()
    j.records = j.records[:-2]
    j.rev -= 1
    j.at(11)
    b = j.job("b", q)
    b.workload.admit()
    b.pod("head")
    j.at(14)
    head.gone()
    _, lines = story(j, "no-survivors")
    assert ">    1000  3/0/2.5/1    Workload rayjob-b-1: created, QuotaReserved (Test), Admitted (Test)" in lines
    assert ">    1000  3/0/2.5/2    head pod b-head-1: created, on node-1, Running" in lines


def test_a_long_story_is_told_by_its_begin_and_its_end() -> None:
    j, q, a, head = survivor(pause=60)
    j.records = j.records[:-2]
    j.rev -= 1
    for second in range(12, 60):
        j.at(second)
        q.books(second % 2, second % 2)
    j.at(70)
    head.gone()
    j.at(71)
    a.suspend(False)
    _, lines = story(j, "no-survivors")
    assert len(lines) <= LINES
    assert any("left out" in line for line in lines)
    begin = next(i for i, line in enumerate(lines) if line.startswith(">       0"))
    assert "QuotaReserved False" in lines[begin]
    assert any(line.startswith(">   60000") and "head pod a-head-1: deleted" in line for line in lines)
    left_out = sum(int(line.split()[1]) for line in lines if "left out" in line)
    told = sum("left out" not in line for line in lines) - 2
    assert left_out + told == len(story_of_all(j))


def story_of_all(j: Journal) -> list[str]:
    """Every line that a story without a limit would have."""
    listed = records(j)
    (found,) = (one for one in replay(listed).unscoped([]) if one.rule == "no-survivors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("raykueue.audit.timeline.LINES", 10_000)
        return list(timelines([found], steps(listed))[found.id][2:])


def test_an_open_story_goes_on_to_the_end_of_the_journal() -> None:
    j, _, _, _ = survivor()
    gone = j.records.pop(-2)
    found, lines = story(j, "no-survivors")
    assert found.end is None
    assert lines[-1].startswith(">     900")
    assert gone.arrived > found.begin.t


def test_booked_shows_both_numbers_where_they_differ() -> None:
    j = Journal()
    q = j.at(0).queue(cpu=3)
    a = j.job("a", q)
    j.at(1)
    a.workload.reserve()
    j.at(2)
    q.books(2.5, 0)
    j.at(20).marker("the end")
    listed = records(j)
    under = [one for one in replay(listed).unscoped([]) if one.cause == "under-booked"]
    lines = timelines(under, steps(listed))[under[0].id]
    assert any("3/2.5:0/2.5/0" in line for line in lines)


def test_pods_that_nobody_pays_for_count_in_the_queue_that_their_job_asks_for() -> None:
    j = Journal()
    q = j.at(0).queue(cpu=3)
    local = {
        "metadata": {"name": "lq", "namespace": "team-ns", "uid": "lq"},
        "spec": {"clusterQueue": q.name},
    }
    j.emit("LocalQueue", local, "ADDED")
    a = j.job("a", q)
    j.at(1)
    a.pod("head")
    j.at(5).marker("the end")
    found, lines = story(j, "pods-covered")
    assert found.cause == "never-charged"
    assert any(line.startswith(">       0  3/?/0/1") for line in lines)


def test_no_line_is_wider_than_asked_for() -> None:
    j, _, _, _ = survivor()
    _, lines = story(j, "no-survivors", width=50)
    assert max(len(line) for line in lines) == 50
    assert any(line.endswith("…") for line in lines)


def test_two_resources_stand_side_by_side() -> None:
    j = Journal()
    flavors = {"default": {"cpu": 3, "memory": "8Gi", "nvidia.com/gpu": 1}}
    q = j.at(0).queue(flavors=flavors)
    asks = {"cpu": 1, "memory": "2Gi", "nvidia.com/gpu": 1}
    a = j.job("a", q, pods={"head": asks})
    a.workload.admit()
    head = a.pod("head")
    j.at(3)
    a.workload.finish()
    j.at(4)
    head.gone()
    _, lines = story(j, "no-survivors")
    assert lines[1].split() == ["CPU", "GiB"], "only the first two"
    assert any(line.startswith(">       0  3/?/0/1  8/?/0/2") for line in lines)
