from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from raykueue.audit.thresholds import Thresholds
from raykueue.errors import InfraError, UsageError, WaitFailed
from raykueue.run.queue import IDLE_SECONDS, Queue
from raykueue.run.timeouts import Timeouts
from tests.run.feeds import NAMESPACE, FakeFeed, admission, conditions


def queue_in(feed: FakeFeed, books: float = 10.0, state: float = 10.0) -> Queue:
    return Queue(feed, "queue", "local", NAMESPACE, Timeouts(books=books, state=state))


def flavors(cpu: str, flavor: str = "flavor") -> list[dict[str, Any]]:
    return [{"name": flavor, "resources": [{"name": "cpu", "total": cpu}]}]


def publish(feed: FakeFeed, usage: str, reservation: str | None = None, **counts: int) -> int:
    """Kueue writes the ClusterQueue's status."""
    status = {"flavorsUsage": flavors(usage), "flavorsReservation": flavors(reservation or usage)}
    return feed.write("ClusterQueue", "queue", status=status | counts)


def later(feed: FakeFeed, step: Callable[[], object]) -> threading.Thread:
    """Does it once somebody waits."""

    def run() -> None:
        while not feed._waits:
            assert time.monotonic() < deadline
        step()

    deadline = time.monotonic() + 10
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def admit(feed: FakeFeed, cpu: str, name: str = "workload", queue: str = "queue", *, admitted: bool = True) -> None:
    states = {"QuotaReserved": "True"} | ({"Admitted": "True"} if admitted else {})
    feed.workload("RayJob job", name, admission=admission(cpu, queue), **states)


def test_what_is_booked_is_told_once_kueue_has_published_it() -> None:
    feed = FakeFeed()
    publish(feed, "0")
    admit(feed, "2500m")
    writer = later(feed, lambda: publish(feed, "2500m"))
    assert queue_in(feed).booked == {"cpu": "2500m"}
    writer.join()


def test_what_is_never_published_is_told_as_it_is_after_kueues_time() -> None:
    feed = FakeFeed()
    publish(feed, "1")
    admit(feed, "2500m")
    assert queue_in(feed, books=0.01).booked == {"cpu": 1}


def test_reserved_counts_what_is_not_admitted_yet_and_booked_does_not() -> None:
    feed = FakeFeed()
    admit(feed, "1", "one")
    admit(feed, "2", "two", admitted=False)
    publish(feed, "1", "3")
    assert queue_in(feed).booked == {"cpu": 1}
    assert queue_in(feed).reserved == {"cpu": 3}
    assert queue_in(feed).charged == {"cpu": 3}


def test_another_queue_and_finished_workloads_are_not_charged_here() -> None:
    feed = FakeFeed()
    admit(feed, "1", "mine")
    admit(feed, "2", "others", queue="other")
    feed.workload(name="done", admission=admission("4"), QuotaReserved="True", Finished="True")
    assert queue_in(feed).charged == {"cpu": 1}


def test_flavors_are_added_up() -> None:
    feed = FakeFeed()
    status = {"flavorsUsage": [*flavors("1"), *flavors("500m", "spot")]}
    feed.write("ClusterQueue", "queue", status=status)
    assert queue_in(feed, books=0.0).booked == {"cpu": "1500m"}
    group = [{"flavors": [{"name": name, "resources": [{"name": "cpu", "nominalQuota": "3"}]} for name in ("a", "b")]}]
    feed.write("ClusterQueue", "queue", spec={"resourceGroups": group})
    assert queue_in(feed).quota == {"cpu": 6}


def test_peaks_are_of_any_revision_and_none_adds_what_was_not_at_once() -> None:
    feed = FakeFeed()
    publish(feed, "0")
    admit(feed, "2", "one")
    publish(feed, "2")
    feed.workload(name="one", QuotaReserved="False", Admitted="False")
    publish(feed, "0", "3")
    admit(feed, "1", "two")
    feed.delete("Workload", "two")
    publish(feed, "0")
    assert queue_in(feed).peak_booked == {"cpu": 3}
    assert queue_in(feed).peak_charged == {"cpu": 2}
    assert queue_in(feed).charged == {}


def test_counts_are_told_once_they_are_as_expected_else_as_they_are() -> None:
    feed = FakeFeed()
    publish(feed, "0", pendingWorkloads=1)
    writer = later(feed, lambda: publish(feed, "0", pendingWorkloads=2, admittedWorkloads=1))
    assert queue_in(feed).counts(pending=2, admitted=1) == {"pending": 2, "reserving": 0, "admitted": 1}
    writer.join()
    assert queue_in(feed, books=0.01).counts(pending=7)["pending"] == 2


def test_a_count_that_kueue_does_not_have_is_refused_with_those_it_has() -> None:
    feed = FakeFeed()
    publish(feed, "0")
    with pytest.raises(UsageError, match="does not count running; it counts pending, reserving, admitted"):
        queue_in(feed).counts(running=1)


def test_a_queue_is_active_once_kueue_says_so() -> None:
    feed = FakeFeed()
    queue = queue_in(feed)

    def activate() -> None:
        feed.write("ClusterQueue", "queue", status={"conditions": conditions(Active="False FlavorNotFound")})
        feed.write("ClusterQueue", "queue", status={"conditions": conditions(Active="True Ready")})

    writer = later(feed, activate)
    assert queue.until_active() is queue
    writer.join()


def test_a_queue_that_does_not_become_active_is_told_with_what_was_seen() -> None:
    feed = FakeFeed()
    with pytest.raises(InfraError, match="ClusterQueue queue: expected to become Active, last seen None"):
        queue_in(feed, state=0.01).until_active()
    feed.write("ClusterQueue", "queue", status={"conditions": conditions(Active="False FlavorNotFound")})
    with pytest.raises(InfraError, match="FlavorNotFound"):
        queue_in(feed, state=0.01).until_active()


def test_a_queue_that_is_gone_is_told_at_once() -> None:
    feed = FakeFeed()
    publish(feed, "0")
    feed.delete("ClusterQueue", "queue")
    with pytest.raises(InfraError, match="ClusterQueue queue is not there"):
        _ = queue_in(feed).booked


def test_a_workload_that_is_admitted_first_and_then_put_on_hold_is_waited_for() -> None:
    feed = FakeFeed()
    publish(feed, "0", reservingWorkloads=0)
    feed.workload(QuotaReserved="False Pending")

    def admit_and_hold() -> None:
        admit(feed, "2")
        publish(feed, "2", reservingWorkloads=1)
        feed.workload(QuotaReserved="False OnHold")
        publish(feed, "0", reservingWorkloads=0)

    kueue = later(feed, admit_and_hold)
    assert queue_in(feed).until_set_aside().booked == {}
    kueue.join()


def test_idle_quota_is_outlasted_from_when_the_last_hold_began() -> None:
    feed = FakeFeed()
    begun: list[float] = []

    def hold(name: str) -> None:
        begun.append(time.monotonic())
        admit(feed, "2", name)

    def hold_twice() -> None:
        hold("one")
        later(feed, lambda: hold("two")).join()

    kueue = later(feed, hold_twice)
    assert queue_in(feed).outlast_idle_quota(seconds=0.5).name == "queue"
    assert len(begun) == 2
    assert time.monotonic() - begun[1] >= 0.5
    kueue.join()


def test_quota_that_nobody_is_given_is_waited_for_once() -> None:
    feed = FakeFeed()
    feed.workload(QuotaReserved="False Pending")
    before = time.monotonic()
    queue_in(feed).outlast_idle_quota(seconds=0.05)
    assert 0.05 <= time.monotonic() - before < 5


def test_the_ledger_lets_idle_quota_of_an_invalid_job_be_for_less() -> None:
    assert Thresholds().workload < IDLE_SECONDS


@pytest.mark.parametrize("state", [{"Finished": "True"}, {"QuotaReserved": "False OnHold"}])
def test_what_kueue_has_set_aside_is_not_waited_for(state: dict[str, str]) -> None:
    feed = FakeFeed()
    publish(feed, "0")
    feed.workload(**state)
    assert queue_in(feed, state=0.01).until_set_aside().name == "queue"


@pytest.mark.parametrize("admitted", [True, False], ids=["admitted", "pending"])
def test_what_kueue_never_sets_aside_is_named(admitted: bool) -> None:
    feed = FakeFeed()
    publish(feed, "0")
    feed.workload()
    if admitted:
        admit(feed, "2")
    with pytest.raises(WaitFailed, match=r"ClusterQueue queue: expected .* last seen Workload workload: "):
        queue_in(feed, state=0.01).until_set_aside()
