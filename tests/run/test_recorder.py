from __future__ import annotations

import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from raykueue.errors import ComponentDied, RecorderError, UsageError
from raykueue.model.events import Barrier, Event, Gap, Header, Listed, Marker, Moment
from raykueue.model.kinds import KINDS
from raykueue.run.feed import Feed
from raykueue.run.journals import load
from raykueue.run.recorder.scopes import ScopeNames
from raykueue.run.recording import Recording
from tests.kube.fake_api import FakeApi
from tests.run.fake_recorder import NAMESPACE, eventually, recorder, soon

SCOPE = ScopeNames("one", namespaces=("ns-1",), cluster_queues=("cq-1",), flavors=("fl-1",))


def names(feed: Feed) -> list[str]:
    return [event.object["metadata"]["name"] for event in feed.events]


def has(name: str) -> Callable[[Feed], bool | None]:
    return lambda feed: True if name in names(feed) else None


def test_the_journal_begins_with_a_header_and_holds_everything_but_the_sentinels(tmp_path: Path) -> None:
    api = FakeApi(without=["Cohort"])
    api.put("Pod", "before", "ns-1")
    with recorder(tmp_path, api) as run:
        run.do(lambda api: api.put("Pod", "after", "ns-1"))
        with Recording(run.socket) as recording:
            recording.mark("kueue-down", reason="test")
            recording.barrier()
    records = load(tmp_path / "journal.jsonl")
    header = records[0]
    assert isinstance(header, Header)
    assert header.pair == {"kueue": "0.19.2"}
    assert header.settings["kinds"]["Workload"] == "kueue.x-k8s.io/v1beta2"
    assert header.settings["kinds"]["missing"] == ["Cohort"]
    events = [record for record in records if isinstance(record, Event)]
    assert [event.object["metadata"]["name"] for event in events] == ["before", "after"]
    assert {record.kind for record in records if isinstance(record, Listed)} == {kind.name for kind in KINDS} - {
        "Cohort"
    }
    assert [(one.what, one.about) for one in records if isinstance(one, Marker)] == [("kueue-down", {"reason": "test"})]
    assert not any(name == NAMESPACE for kind in KINDS for name in api.names(kind.name)), "sentinels are deleted"


def test_its_socket_belongs_to_this_user_alone(tmp_path: Path) -> None:
    with recorder(tmp_path) as run:
        assert stat.S_IMODE(run.socket.stat().st_mode) == 0o600


def test_a_socket_works_however_deep_the_run_folder_is(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 100) / ("e" * 100)
    folder.mkdir(parents=True)
    with recorder(folder) as run, Recording(run.socket) as recording:
        assert recording.stats()["barriers"] == 1


def test_a_scope_gets_what_was_recorded_before_and_then_what_arrives_and_nothing_else(tmp_path: Path) -> None:
    api = FakeApi()
    api.put("ClusterQueue", "cq-1")
    api.put("ClusterQueue", "cq-2")
    api.put("Namespace", "ns-1")
    api.put("Pod", "p1", "ns-1")
    api.put("Pod", "foreign", "ns-2")
    with recorder(tmp_path, api) as run, Recording(run.socket) as recording:
        feed = recording.open(SCOPE)
        assert sorted(names(feed)) == ["cq-1", "ns-1", "p1"]
        run.do(lambda api: [api.put("Pod", "foreign-2", "ns-2"), api.put("ClusterQueue", "cq-2", spec={})])
        run.do(
            lambda api: [
                api.put("Pod", "p2", "ns-1"),
                api.put("ResourceFlavor", "fl-1"),
                api.remove("Pod", "p1", "ns-1"),
            ]
        )
        feed.wait(lambda feed: feed.object("Pod", "ns-1", "p1") is None or None, soon())
        feed.wait(has("fl-1"), soon())
        assert sorted(names(feed)) == ["cq-1", "fl-1", "ns-1", "p1", "p1", "p2"]


def put(pod: str) -> Callable[[FakeApi], int]:
    return lambda api: api.put("Pod", pod, "ns-1")


def test_a_scope_opened_in_the_midst_of_events_loses_none_and_gets_none_twice(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        done = threading.Event()

        def write() -> None:
            for number in range(300):
                run.do(put(f"p{number}"))
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        eventually(lambda: run.do(lambda api: len(api.names("Pod"))) >= 50)
        feed = recording.open(SCOPE)
        writer.join()
        feed.wait(has("p299"), soon())
        assert names(feed) == [f"p{number}" for number in range(300)]


def test_two_scopes_can_not_share_a_namespace_or_a_queue_but_a_priority_class(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        feed = recording.open(ScopeNames("a", namespaces=("ns-a",), cluster_queues=("cq",), priority_classes=("high",)))
        with pytest.raises(UsageError, match="ClusterQueue cq belongs to scope a"):
            recording.open(ScopeNames("b", cluster_queues=("cq",)))
        other = recording.open(ScopeNames("c", namespaces=("ns-c",), priority_classes=("high",)))
        run.do(lambda api: api.put("WorkloadPriorityClass", "high", value=10))
        feed.wait(has("high"), soon())
        other.wait(has("high"), soon())


def test_after_giving_up_nobody_waits_and_the_journal_can_still_be_saved(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        feed = recording.open(SCOPE)
        errors: list[BaseException] = []

        def wait() -> None:
            with pytest.raises(ComponentDied, match="kueue ended") as raised:
                feed.wait(has("never"), soon())
            errors.append(raised.value)

        waiting = threading.Thread(target=wait)
        waiting.start()
        eventually(lambda: feed._waits)
        recording.give_up(ComponentDied("kueue ended"))
        waiting.join(5)
        assert len(errors) == 1
        later = recording.open(ScopeNames("two", namespaces=("ns-2",)))
        for refused in (lambda: later.wait(has("never"), soon()), recording.barrier, lambda: recording.judge("one")):
            with pytest.raises(ComponentDied):
                refused()
        recording.slice("one", tmp_path / "one.jsonl.gz")
        assert load(tmp_path / "one.jsonl.gz")


def test_requests_at_the_same_time_share_a_barrier(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        before = recording.stats()["barriers"]
        threads = [threading.Thread(target=recording.barrier) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert recording.stats()["barriers"] - before <= 4


def test_what_was_written_before_a_barrier_is_folded_after_it_even_if_a_stream_is_late(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        run.do(lambda api: api.held.add("Pod"))
        rev = run.do(lambda api: api.put("Pod", "late", "ns-1"))
        run.do(lambda api: api.put("Job", "early", "ns-1"))
        moments: list[Moment] = []
        thread = threading.Thread(target=lambda: moments.append(recording.barrier()))
        thread.start()
        feed = recording.open(SCOPE)
        feed.wait(has("early"), soon())
        assert not moments, "the Pod's echo is held back"
        run.do(lambda api: api.release("Pod"))
        thread.join()
        assert moments[0].rev > rev
        assert [event.object["metadata"]["name"] for event in run.auditor.folded] == ["late", "early"]


def test_a_missing_echo_is_an_error_that_names_the_kind(tmp_path: Path) -> None:
    with recorder(tmp_path, barrier_timeout_s=0.3) as run, Recording(run.socket) as recording:
        run.do(lambda api: api.held.add("Workload"))
        with pytest.raises(RecorderError, match=r"Workload: revision \d+ did not arrive within 0.3 s"):
            recording.barrier()
        run.do(lambda api: api.release("Workload"))
        assert recording.barrier().rev > 0


def test_a_barrier_waits_for_a_webhook_that_is_on_its_way_back(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        patches = run.api.requests["PATCH", "Workload"]
        run.do(lambda api: api.refuse.update({("PATCH", "Workload"): 500}))
        moments: list[Moment] = []
        thread = threading.Thread(target=lambda: moments.append(recording.barrier()))
        thread.start()
        eventually(lambda: run.do(lambda api: api.requests["PATCH", "Workload"]) >= patches + 2)
        assert not moments
        run.do(lambda api: api.refuse.clear())
        thread.join()
        assert len(moments) == 1


def test_a_kind_that_is_proven_by_a_list_is_waited_for_until_its_stream_has_what_the_list_has(tmp_path: Path) -> None:
    api = FakeApi()
    api.put("ClusterQueue", "cq-gone")
    with recorder(tmp_path, api, barrier_timeout_s=2) as run, Recording(run.socket) as recording:

        def check(change: Callable[[FakeApi], int]) -> None:
            run.do(lambda api: api.held.add("ClusterQueue"))
            rev = run.do(change)
            moments: list[Moment] = []
            thread = threading.Thread(target=lambda: moments.append(recording.barrier()))
            lists = run.api.requests["LIST", "ClusterQueue"]
            thread.start()
            eventually(lambda: run.api.requests["LIST", "ClusterQueue"] > lists)
            feed_has_nothing = not moments
            run.do(lambda api: api.release("ClusterQueue"))
            thread.join()
            assert feed_has_nothing
            assert moments[0].rev >= rev
            assert run.auditor.folded[-1].rev == rev

        check(lambda api: api.put("ClusterQueue", "cq-new"))
        check(lambda api: api.put("ClusterQueue", "cq-new", status={"x": 1}))
        check(lambda api: api.remove("ClusterQueue", "cq-gone"))


def test_an_event_that_no_list_could_show_is_never_too_late_for_the_ledger(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        run.do(lambda api: api.held.add("Node"))
        rev = run.do(lambda api: (api.put("Node", "node-1"), api.remove("Node", "node-1"))[0])
        passed = recording.barrier()
        run.do(lambda api: api.release("Node"))
        eventually(lambda: sum(isinstance(one, Event) for one in run.auditor.records) == 2)
        late = [one for one in run.auditor.records if isinstance(one, Event)]
        assert [one.place for one in late] == [passed.rev + 1, passed.rev + 1]
    written = [one for one in load(tmp_path / "journal.jsonl") if isinstance(one, Event)]
    assert [one.rev for one in written] == [rev, rev + 1], "the journal keeps the truth"
    assert written == late, "and a replay folds them at the same place"


def test_a_kind_whose_sentinel_is_refused_is_proven_by_lists(tmp_path: Path) -> None:
    api = FakeApi()
    api.refuse["POST", "LimitRange"] = 422
    with recorder(tmp_path, api) as run, Recording(run.socket) as recording:
        lists = run.api.requests["LIST", "LimitRange"]
        recording.barrier()
        assert run.api.requests["LIST", "LimitRange"] == lists + 1
    header = load(tmp_path / "journal.jsonl")[0]
    assert isinstance(header, Header)
    assert "422" in header.settings["proven_by_list"]["LimitRange"]
    assert header.settings["proven_by_list"]["Node"] == ""


def test_a_start_fails_if_the_sentinel_of_a_kind_that_judging_needs_is_refused(tmp_path: Path) -> None:
    api = FakeApi()
    api.refuse["POST", "RayJob"] = 403
    with pytest.raises(RecorderError, match=r"RayJob: POST .* 403"), recorder(tmp_path, api):
        pass


def test_a_lost_watch_with_a_gap_is_in_the_journal_of_every_scope(tmp_path: Path) -> None:
    def lose(api: FakeApi) -> None:
        api.put("Pod", "x", "ns-2")
        api.compact("Pod")
        api.expire_watches("Pod")

    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        recording.open(SCOPE)
        run.do(lose)
        eventually(lambda: recording.stats()["gaps"])
        recording.slice("one", tmp_path / "one.jsonl.gz")
        assert [one.kind for one in load(tmp_path / "one.jsonl.gz") if isinstance(one, Gap)] == ["Pod"]


def test_a_slice_is_a_journal_of_what_concerns_the_scope(tmp_path: Path) -> None:
    api = FakeApi()
    api.put("Node", "node-1", status={"old": True})
    api.put("Node", "node-1", status={"old": False})
    api.put("Pod", "foreign", "ns-2")
    with recorder(tmp_path, api) as run, Recording(run.socket) as recording:
        feed = recording.open(SCOPE)
        run.do(
            lambda api: [api.put("ClusterQueue", "cq-1"), api.put("Pod", "p1", "ns-1"), api.put("Pod", "p9", "ns-2")]
        )
        feed.wait(has("p1"), soon())
        recording.barrier()
        recording.slice("one", tmp_path / "deep" / "one.jsonl.gz")
    records = load(tmp_path / "deep" / "one.jsonl.gz")
    assert isinstance(records[0], Header)
    events = [record for record in records if isinstance(record, Event)]
    assert sorted(one.object["metadata"]["name"] for one in events) == ["cq-1", "node-1", "p1"]
    assert any(isinstance(record, Barrier) for record in records)
    assert [one.what for one in records if isinstance(one, Marker)] == ["scope-open", "slice"]
    end = records.pop()
    assert isinstance(end, Marker)
    assert end.about["scope"]["cluster_queues"] == ["cq-1"]
    assert end.about["judged"] is None
    whole = load(tmp_path / "journal.jsonl")
    assert [record for record in whole if record in records] == records, "the order is that of the whole journal"


def test_a_test_process_that_dies_closes_its_scopes(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as watching:
        victim = Recording(run.socket)
        victim.open(SCOPE)
        victim.disconnect()
        eventually(lambda: watching.stats()["scopes"]["closed"])
    marks = [one for one in load(tmp_path / "journal.jsonl") if isinstance(one, Marker)]
    assert [(one.what, one.about["scope"]) for one in marks] == [("scope-open", "one"), ("scope-close", "one")]
    assert marks[1].about["why"] == "its test process is gone"


def test_an_unknown_scope_or_request_is_a_usage_error(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        with pytest.raises(UsageError, match="scope nope is not open; open are: none"):
            recording.judge("nope")
        with pytest.raises(UsageError, match="no request 'dance'"):
            recording._connection.call("dance")


def test_many_unfolded_events_are_folded_without_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raykueue.run.recorder.process.BACKLOG", 10)
    monkeypatch.setattr("raykueue.run.recorder.process.BACKLOG_LOOK_S", 0.05)
    with recorder(tmp_path) as run:
        run.do(lambda api: [api.put("Pod", f"p{number}", "ns-1") for number in range(11)])
        eventually(lambda: len(run.auditor.folded) == 11)
