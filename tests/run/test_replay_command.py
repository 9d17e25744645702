from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raykueue.cli import main
from raykueue.errors import EXIT_FAILED, EXIT_INFRA, EXIT_OK, EXIT_USAGE
from raykueue.model.events import Event, Header
from raykueue.run.journals import load, save
from tests.audit.journals import EPOCH, PAIR, Journal

LONG = "a-name-of-a-job-that-somebody-made-up-without-thinking-of-tables"


def survivor() -> Journal:
    """A head that outlives its hold for four seconds, beside a job that waits."""
    j = Journal()
    q = j.at(0).queue(cpu=3)
    q.books(0, 0)
    a = j.job(LONG, q, annotations={"x": "y"})
    a.workload.admit()
    head, *others = a.start()
    q.books(2.5, 2.5)
    j.at(5)
    for pod in others:
        pod.end()
    a.state("Complete", "SUCCEEDED")
    j.at(10)
    a.workload.finish()
    q.books(0, 0)
    j.at(14)
    head.gone()
    return j


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    save([Header(EPOCH, pair=PAIR), *survivor().records], tmp_path / "j.jsonl.gz")
    return tmp_path / "j.jsonl.gz"


def test_findings_are_told_with_their_stories(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(journal)]) == EXIT_FAILED
    out = capsys.readouterr().out
    assert "no-survivors (hazard, finished/clean-up)" in out
    assert "Finished (Succeeded)" in out
    assert out.endswith("1 finding\n")
    assert all(len(line) <= 100 for line in out.splitlines())


def test_one_rule_alone(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(journal), "--rule", "no-survivors"]) == EXIT_FAILED
    assert main(["replay", str(journal), "--rule", "books-match"]) == EXIT_OK
    assert capsys.readouterr().out.endswith("no findings\n")
    assert main(["replay", str(journal), "--rule", "no-such-rule"]) == EXIT_USAGE
    assert "books-match" in capsys.readouterr().err


def test_a_record_with_a_hole_is_never_green(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    j = Journal()
    a = j.at(0).job("a", j.queue())
    stranger = ({"metadata": {"name": "gone", "uid": "never-seen"}}, "RayCluster")
    a.pod("head", labels={"ray.io/node-type": "head"}, owner=stranger)
    save([Header(EPOCH, pair=PAIR), *j.records], tmp_path / "j.jsonl")
    assert main(["replay", str(tmp_path / "j.jsonl")]) == EXIT_INFRA
    assert "not judged: unattributed: pod team-ns/a-head-1" in capsys.readouterr().out


def test_findings_for_programs(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(journal), "--json"]) == EXIT_FAILED
    body: dict[str, Any] = json.loads(capsys.readouterr().out)
    (found,) = body["findings"]
    assert (found["rule"], found["seconds"], found["peak"]) == ("no-survivors", [4.0, 4.0], {"cpu": 1000})
    assert any("head pod" in line for line in found["timeline"])
    assert (body["pair"], body["problems"], body["differences"]) == (PAIR, [], [])


def rev(journal: Path, kind: str, index: int) -> int:
    events = [one for one in load(journal) if isinstance(one, Event) and one.kind == kind]
    return events[index].rev


def books(journal: Path, moment: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["replay", str(journal), "--at", moment]) == EXIT_OK
    return capsys.readouterr().out


def test_the_books_at_a_revision_a_time_and_an_offset(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished = rev(journal, "Workload", -1)
    before = books(journal, str(finished - 1), capsys)
    assert " 3        2.5     2.5      1" in before
    assert "admitted" in before
    after = books(journal, str(finished), capsys)
    assert " 3        2.5     0        1" in after
    assert "no open hold" in after
    assert "(ended)" in after
    assert all(len(line) <= 100 for out in (before, after) for line in out.splitlines())
    later = books(journal, "+10.5s", capsys)
    assert " 3        0       0        1" in later
    assert books(journal, "2026-09-21T14:13:30.5", capsys) == later
    assert books(journal, "2026-09-21T16:13:30.5+02:00", capsys) == later
    assert "head" not in books(journal, "+99", capsys)


def test_the_books_for_programs(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(journal), "--at", "+7s", "--json"]) == EXIT_OK
    body: dict[str, Any] = json.loads(capsys.readouterr().out)
    (level,) = body["levels"]
    assert (level["nominal"], level["usage"], level["charged"], level["demand"]) == (3000, 2500, 2500, 1000)
    (hold,) = body["holds"]
    assert (hold["admitted"], hold["charged"]) == (True, [["default", "cpu", 2500]])
    assert [(pod["pod_set"], pod["paid"]) for pod in body["pods"]] == [
        ("head", True),
        ("submitter", True),
        ("workers", True),
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--at", "noon"], "'noon' is no moment: write a revision"),
        (["--at", "5"], "5 lies before the journal's first event, at revision 101"),
        (["--at", "5", "--rule", "no-survivors"], "leave out --rule"),
    ],
)
def test_what_can_not_be_shown_says_why(
    journal: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(journal), *words]) == EXIT_USAGE
    assert says in capsys.readouterr().err


def test_a_file_that_is_no_journal_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "nothing")]) == EXIT_USAGE
    assert "can't be read" in capsys.readouterr().err
