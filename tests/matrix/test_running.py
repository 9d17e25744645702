from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_INFRA, EXIT_INTERRUPTED, EXIT_OK
from raykueue.matrix.matrix_file import MatrixFile
from raykueue.matrix.outcome import exit_code, outcomes
from raykueue.matrix.running import OUTPUT, Runner
from raykueue.matrix.selection import Shard, pair_id
from raykueue.model.versions import Pair
from tests.matrix.stage import MIXED, NEW, OLD, PAIRS, by_pair, matrix, ran, runner


def until(reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@contextmanager
def interrupted_when(reached: Callable[[], bool]) -> Iterator[None]:
    """A ctrl-C for this process, from beside, once it is so."""

    def press() -> None:
        until(reached, "nothing to interrupt")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    yield
    thread.join()


def says(folder: Path, line: str) -> bool:
    return any(line in path.read_text() for path in folder.glob(f"pairs/*/{OUTPUT}"))


def test_each_pair_has_a_process_and_a_report_of_its_own(tmp_path: Path) -> None:
    found = ran(tmp_path)
    assert [one.code for one in found.values()] == [EXIT_OK] * 3
    folders = {one.report.folder for one in found.values() if one.report}
    assert {folder.parent.name for folder in folders} == {pair_id(pair) for pair in PAIRS}
    assert exit_code(found.values()) == EXIT_OK


@pytest.mark.parametrize(
    ("act", "code", "reason"),
    [
        ("fail", EXIT_FAILED, ""),
        ("infra", EXIT_INFRA, ""),
        ("skipped", EXIT_EMPTY, ""),
        ("excused", EXIT_EMPTY, ""),
        ("crash", EXIT_INFRA, "code 3 and left no report: Traceback: it broke"),
        ("killed", EXIT_INFRA, "signal 9 and left no report"),
        ("no-build", EXIT_INFRA, "the build of its binaries failed: no compiler"),
        ("foreign", EXIT_INFRA, "its report is about"),
        ("other-profile", EXIT_INFRA, "its report is of profile full, not smoke"),
        ("liar", EXIT_INFRA, "its process ended with 1, its report says 0"),
    ],
)
def test_a_bad_pair_stops_no_other_and_is_never_green(tmp_path: Path, act: str, code: int, reason: str) -> None:
    found = ran(tmp_path, {NEW: act}, pairs=[NEW, MIXED])
    assert found[NEW].code == code
    assert reason in found[NEW].reason
    assert found[MIXED].code == EXIT_OK
    assert exit_code(found.values()) == (EXIT_FAILED if code == EXIT_FAILED else EXIT_INFRA)


def a_file_in_the_place_of_its_folder(_: Runner, folder: Path) -> None:
    folder.write_text("")


def a_folder_in_the_place_of_its_output(_: Runner, folder: Path) -> None:
    (folder / OUTPUT).mkdir(parents=True)


def a_program_that_is_not_there(running: Runner, folder: Path) -> None:
    usual = running.commands.test

    def test(pair: Pair, reports: Path) -> Sequence[str]:
        return [str(folder / "nosuch")] if reports == folder else usual(pair, reports)

    running.commands = replace(running.commands, test=test)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (a_file_in_the_place_of_its_folder, "File exists"),
        (a_folder_in_the_place_of_its_output, "Is a directory"),
        (a_program_that_is_not_there, "No such file or directory"),
    ],
)
def test_a_pair_that_can_not_be_run_stops_no_other(
    trouble: Callable[[Runner, Path], None], words: str, tmp_path: Path
) -> None:
    running = runner(matrix(tmp_path))
    (tmp_path / "pairs").mkdir()
    trouble(running, tmp_path / "pairs" / pair_id(NEW))
    found = by_pair(outcomes(running.run()))
    assert [one.code for one in found.values()] == [EXIT_INFRA, EXIT_OK, EXIT_OK]
    assert found[NEW].reason.startswith("it could not be run: ")
    assert words in found[NEW].reason
    assert exit_code(found.values()) == EXIT_INFRA


def test_known_defects_and_pairs_that_a_gate_excludes_are_no_failure(tmp_path: Path) -> None:
    found = ran(tmp_path, {NEW: "known", OLD: "inapplicable"})
    assert (found[NEW].code, found[OLD].code) == (EXIT_OK, EXIT_EMPTY)
    assert exit_code(found.values()) == EXIT_OK
    assert exit_code([found[OLD]]) == EXIT_EMPTY


def test_one_that_is_not_over_in_time_is_ended_and_says_so(tmp_path: Path) -> None:
    found = ran(tmp_path, {NEW: "hang", MIXED: "stubborn"}, pair_seconds=3.0, grace_seconds=1.0)
    assert [one.code for one in found.values()] == [EXIT_INFRA, EXIT_INFRA, EXIT_OK]
    assert all("was not over after" in found[pair].reason for pair in (NEW, MIXED))


def test_ctrl_c_ends_what_runs_with_its_report_and_begins_nothing_more(tmp_path: Path) -> None:
    running = runner(matrix(tmp_path), {MIXED: "hang"})
    with interrupted_when(lambda: says(tmp_path, "hanging")):
        done = running.run()
    assert done.interrupted
    found = by_pair(outcomes(done))
    assert [found[pair].code for pair in PAIRS] == [EXIT_OK, EXIT_INTERRUPTED, EXIT_INFRA]
    report = found[MIXED].report
    assert report is not None
    assert report.run.interrupted
    assert found[OLD].reason == "it has not run"
    assert exit_code(found.values(), interrupted=done.interrupted) == EXIT_INTERRUPTED
    assert MatrixFile.load(tmp_path) == replace(done, folder=tmp_path.resolve())


def test_ctrl_c_kills_what_does_not_end(tmp_path: Path) -> None:
    running = runner(matrix(tmp_path), {NEW: "stubborn"}, grace_seconds=0.5)
    with interrupted_when(lambda: says(tmp_path, "hanging")):
        done = running.run()
    assert by_pair(outcomes(done))[NEW].code == EXIT_INTERRUPTED


def test_a_disk_that_refuses_ends_it_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = runner(matrix(tmp_path), {MIXED: "hang"}, jobs=2)
    monkeypatch.setattr(running, "tell", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        running.run()


def test_what_was_found_out_is_not_run_again(tmp_path: Path) -> None:
    first = runner(matrix(tmp_path), {NEW: "fail", MIXED: "infra", OLD: "crash"}).run()
    again: list[str] = []
    resumed = runner(MatrixFile.load(tmp_path))
    resumed.tell = lambda one, number, of: again.append(f"{number}/{of} {one.pair.kueue}+{one.pair.kuberay}")
    second = resumed.run()
    assert again == ["3/3 0.19.2+1.5.1", "3/3 0.10.1+1.3.2"]
    assert second.results[pair_id(NEW)] == first.results[pair_id(NEW)]
    assert [one.code for one in outcomes(second)] == [EXIT_FAILED, EXIT_OK, EXIT_OK]


@pytest.mark.parametrize("act", ["fail-and-infra", "fail-and-cut", "fail-and-late"])
def test_a_pair_that_failed_before_everything_was_found_out_is_run_again(act: str, tmp_path: Path) -> None:
    found = ran(tmp_path, {NEW: act}, pairs=[NEW, MIXED])
    assert (found[NEW].code, exit_code(found.values())) == (EXIT_FAILED, EXIT_FAILED)
    again: list[str] = []
    resumed = runner(MatrixFile.load(tmp_path), {NEW: "fail"})
    resumed.tell = lambda one, *_: again.append(pair_id(one.pair))
    assert by_pair(outcomes(resumed.run()))[NEW].code == EXIT_FAILED
    assert again == [pair_id(NEW)]


@pytest.mark.parametrize("act", ["fail-and-infra", "fail-and-cut", "fail-and-late", "fixed-and-infra"])
def test_what_failed_before_has_failed_though_it_passes_now(act: str, tmp_path: Path) -> None:
    ran(tmp_path, {NEW: act}, pairs=[NEW, MIXED])
    for _ in range(2):
        found = by_pair(outcomes(runner(MatrixFile.load(tmp_path)).run()))
        assert [one.code for one in found.values()] == [EXIT_FAILED, EXIT_OK]
        assert "does not any more: a failure that comes and goes" in found[NEW].reason
        assert len(MatrixFile.load(tmp_path).results[pair_id(NEW)].earlier) == 1


@pytest.mark.parametrize(
    ("act", "says"),
    [
        ("crash", "was not judged again: its process ended with code 3"),
        ("no-build", "was not judged again: the build of its binaries failed"),
        ("infra-and-pass", "was not judged again"),
        ("infra", "does not any more: a failure that comes and goes"),
    ],
)
def test_of_what_failed_before_it_is_told_whether_it_was_judged_again(act: str, says: str, tmp_path: Path) -> None:
    ran(tmp_path, {NEW: "fail-and-infra"}, pairs=[NEW, MIXED])
    found = by_pair(outcomes(runner(MatrixFile.load(tmp_path), {NEW: act}).run()))
    assert found[NEW].code == EXIT_FAILED
    assert says in found[NEW].reason


def test_an_earlier_report_that_is_lost_is_not_forgotten(tmp_path: Path) -> None:
    ran(tmp_path, {NEW: "fail-and-infra"}, pairs=[NEW, MIXED])
    done = runner(MatrixFile.load(tmp_path)).run()
    shutil.rmtree(tmp_path / done.results[pair_id(NEW)].earlier[0])
    found = by_pair(outcomes(done))
    assert [one.code for one in found.values()] == [EXIT_INFRA, EXIT_OK]
    assert found[NEW].reason.startswith("what its run before found can't be read any more, begin anew: ")
    again = runner(MatrixFile.load(tmp_path)).run()
    assert again.results == done.results


def test_a_run_before_that_found_out_nothing_is_forgotten(tmp_path: Path) -> None:
    ran(tmp_path, {NEW: "crash", MIXED: "infra"}, pairs=[NEW, MIXED])
    found = by_pair(outcomes(runner(MatrixFile.load(tmp_path)).run()))
    assert [(one.code, one.reason) for one in found.values()] == [(EXIT_OK, ""), (EXIT_OK, "")]


def test_the_file_is_whole_after_every_pair(tmp_path: Path) -> None:
    sizes: list[int] = []
    running = runner(matrix(tmp_path))
    running.tell = lambda *_: sizes.append(len(MatrixFile.load(tmp_path).results))
    running.run()
    assert sizes == [1, 2, 3]


def test_a_shard_runs_its_part_only(tmp_path: Path) -> None:
    found = ran(tmp_path, shard=Shard(2, 2))
    assert list(found) == [MIXED]


def test_side_by_side_they_run_at_the_same_time(tmp_path: Path) -> None:
    running: Runner = runner(matrix(tmp_path), dict.fromkeys(PAIRS, "hang"), jobs=3)
    with interrupted_when(lambda: sum("hanging" in p.read_text() for p in tmp_path.glob(f"pairs/*/{OUTPUT}")) == 3):
        done = running.run()
    assert [one.code for one in outcomes(done)] == [EXIT_INTERRUPTED] * 3
