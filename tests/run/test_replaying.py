"""What is judged live, and what a replay of the saved journal says, is the same."""

from __future__ import annotations

import gzip
import json
import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from raykueue.errors import UsageError
from raykueue.model.events import Barrier, Event, Header, Marker
from raykueue.model.findings import Finding
from raykueue.run.journals import load, save
from raykueue.run.recorder.audited import LedgerAuditor
from raykueue.run.recorder.scopes import ScopeNames
from raykueue.run.recording import Recording
from raykueue.run.replaying import Saved, agrees, differences, judge_again, read
from tests.audit.journals import NAMESPACE, PAIR, Journal
from tests.kube.fake_api import FakeApi
from tests.run.fake_recorder import Harness, recorder

QUICK: dict[str, Any] = {
    "settle": 0.05,
    "ahead": 0.02,
    "persist": 0.05,
    "restart": 0.02,
    "delete": 0.1,
    "workload": 0.05,
}
HELD = ("Pod", "Workload", "RayJob", "ClusterQueue", "Node")


class Traffic(Journal):
    """What happens in one scope; its events are written to a fake API server."""

    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope
        self.names = ScopeNames(scope, namespaces=(f"ns-{scope}",), cluster_queues=(f"cq-{scope}",))

    def uid(self, prefix: str) -> str:
        return super().uid(f"{self.scope}-{prefix}")

    def play(self, seed: int) -> Iterator[Event]:
        """Two jobs with faults of every kind that leaves open and closed windows."""
        dice = random.Random(seed)  # noqa: S311 - chance, not secrecy
        queue = self.queue(self.names.cluster_queues[0], cpu=3)
        queue.books(0, 0)
        a, b = self.job("a", queue), self.job("b", queue)
        a.workload.write()
        b.workload.write()
        a.workload.admit()
        pods = a.start()
        if dice.random() < 0.5:
            pods.append(a.pod("workers", "9"))
        if dice.random() < 0.5:
            queue.books(2.5, 2.5)
        a.state("Running")
        a.workload.evict()
        if dice.random() < 0.5:
            a.state("Suspended")
        a.workload.release()
        b.workload.admit()
        pods += b.start()
        if dice.random() < 0.5:
            b.workload.finish()
        for pod in dice.sample(pods, dice.randrange(len(pods))):
            dice.choice((pod.gone, pod.end))()
        queue.books(dice.choice((0, 2.5, 5)), 2.5)
        yield from (record for record in self.records if isinstance(record, Event))

    def write(self, api: FakeApi, event: Event) -> None:
        body: dict[str, Any] = json.loads(json.dumps(event.object).replace(NAMESPACE, self.names.namespaces[0]))
        metadata = body.pop("metadata")
        name, namespace = metadata["name"], metadata.get("namespace", "")
        metadata.pop("resourceVersion")
        if event.type == "DELETED":
            api.remove(event.kind, name, namespace)
        else:
            body.pop("apiVersion", None)
            api.put(event.kind, name, namespace, metadata=metadata, **body)


@pytest.mark.parametrize("seed", range(4))
def test_a_replay_says_what_was_judged_live_whatever_else_went_on(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - chance, not secrecy
    traffic = {scope: Traffic(scope) for scope in ("one", "two", "three")}
    waiting = [(scope, event) for scope, one in traffic.items() for event in one.play(dice.randrange(10**6))]
    order = {scope: [event for other, event in waiting if other == scope] for scope in traffic}
    with (
        recorder(tmp_path, auditor=LedgerAuditor(QUICK, PAIR), pair=PAIR, **QUICK) as run,
        Recording(run.socket) as recording,
    ):
        for one in traffic.values():
            recording.open(one.names)
        while any(order.values()):
            scope = dice.choice([scope for scope, left in order.items() if left])
            event = order[scope].pop(0)
            run.do(partial(traffic[scope].write, event=event))
            disturb(dice, run, recording)
            threading.Event().wait(dice.random() * 0.01)  # windows must have a length
        for kind in HELD:
            run.do(release(kind))
        for scope in traffic:
            judged = recording.judge(scope, deadline_s=0.5)
            assert judged.problems == ()
            assert judged.findings, "without findings there is nothing to compare"
            recording.slice(scope, tmp_path / f"{scope}.jsonl.gz")
            assert agrees(judged.findings, tmp_path / f"{scope}.jsonl.gz") == []


def release(kind: str) -> Callable[[FakeApi], None]:
    return lambda api: api.release(kind)


def short_lived(api: FakeApi) -> None:
    api.put("Node", "n", spec={})
    api.put("Node", "n", status={})
    api.remove("Node", "n")


def disturb(dice: random.Random, run: Harness, recording: Recording) -> None:
    """Streams that lag behind each other, barriers in between, objects too short-lived for a list, a restart."""
    match dice.randrange(8):
        case 0:
            kind = dice.choice(HELD)
            run.do(lambda api: api.held.add(kind))
        case 1:
            for kind in HELD:
                run.do(release(kind))
        case 2:
            for kind in HELD[:-1]:
                run.do(release(kind))
            recording.barrier()
        case 3:
            run.do(short_lived)
        case 4:
            recording.mark(dice.choice(("kueue-down", "kueue-up", "kuberay-down", "kuberay-up")))


def journal(tmp_path: Path, *, judged: dict[str, Any] | None = None) -> Path:
    """One pod too many, in a journal of a run."""
    j = Journal()
    a = j.at(0).job("a", j.queue())
    a.workload.admit()
    a.pod("head", cpu=2)
    j.at(5).job("b", a.queue)
    barrier = Barrier(j.rev, j.now)
    records = [Header(j.records[0].arrived, pair=PAIR), *j.records, barrier]
    if judged is not None:
        scope = {"name": "s", "namespaces": [NAMESPACE], "cluster_queues": ["cq"], "flavors": [], "cohorts": []}
        about = {"rev": barrier.rev, "arrived": barrier.arrived, "findings": [], "problems": [], **judged}
        records.append(Marker("slice", j.now, {"scope": scope, "judged": about}))
    save(records, tmp_path / "j.jsonl")
    return tmp_path / "j.jsonl"


def too_much(saved: Saved) -> Finding:
    (found,) = (one for one in judge_again(saved).findings if one.rule == "pods-covered")
    return found


def test_a_journal_of_a_whole_run_is_judged_to_its_end(tmp_path: Path) -> None:
    saved = read(journal(tmp_path))
    assert (saved.scope, saved.judged, saved.found) == (None, None, ())
    found = too_much(saved)
    assert (found.rule, found.cause, found.seconds) == ("pods-covered", "under-count", (5.0, 5.0))


def test_differences_name_the_finding_and_the_field(tmp_path: Path) -> None:
    found = too_much(read(journal(tmp_path)))
    other = Finding(**{name: getattr(found, name) for name in Finding.__slots__} | {"id": "x", "peak": {"cpu": 1}})
    same = Finding(**{name: getattr(found, name) for name in Finding.__slots__} | {"peak": {"cpu": 1}})
    assert differences([found], [found]) == []
    assert differences([found], [other]) == sorted(
        [
            f"pods-covered {found.id} (under-count) was found live, but not by the replay",
            "pods-covered x (under-count) was found by the replay, but not live",
        ]
    )
    told = f"pods-covered {found.id} (under-count): peak was {{'cpu': 1}} live, and is {{'cpu': 1000}} in the replay"
    assert told in agrees([same], journal(tmp_path))


def test_a_part_is_judged_where_it_was_judged_live_and_only_its_own_scope(tmp_path: Path) -> None:
    path = journal(tmp_path, judged={})
    saved = read(path)
    assert saved.scope is not None
    assert saved.scope.namespaces == frozenset({NAMESPACE})
    assert saved.judged is not None
    assert too_much(saved).seconds == (5.0, 5.0)
    journal(tmp_path, judged={"rev": 1})
    with pytest.raises(UsageError, match="no barrier at revision 1; is it cut short"):
        judge_again(read(path))


def test_what_keeps_a_part_from_being_judged_is_told(tmp_path: Path) -> None:
    path = journal(tmp_path)
    records = load(path)
    late = next(record for record in records if isinstance(record, Event))
    save([*records, late], path)
    (problem,) = judge_again(read(path)).problems
    assert problem.startswith("late: ClusterQueue")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "must begin with a header, and begins with nothing"),
        (b"[project]\n", "is not a journal: line 1"),
        (b"\xff\xfe\n", "is not a journal: 'utf-8' codec"),
        (b'{"record":"listed","kind":"Pod","rev":1,"arrived":1}\n', "begins with Listed"),
        (b'{"record":"header","arrived":1}\n{"record":"lis', "cut short: its last line, number 2"),
    ],
)
def test_what_is_no_journal_says_why(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=says):
        read(path)


def test_a_compressed_journal_that_is_cut_short_says_so(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl.gz"
    whole = gzip.compress(journal(tmp_path).read_bytes())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match="cut short: Compressed file ended"):
        read(path)
    path.write_bytes(b"no gzip at all")
    with pytest.raises(UsageError, match="can't be read: Not a gzipped file"):
        read(path)
    with pytest.raises(UsageError, match="can't be read: No such file"):
        read(tmp_path / "nothing.jsonl")
