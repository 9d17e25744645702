from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from raykueue.errors import EXIT_FAILED, EXIT_INFRA, EXIT_OK, UsageError
from raykueue.matrix.collecting import collect
from raykueue.matrix.grid import as_json, rows
from raykueue.matrix.matrix_file import MATRIX
from raykueue.matrix.outcome import exit_code
from raykueue.matrix.selection import Shard
from raykueue.model.versions import Pair
from raykueue.report.errors import ReportError
from tests.matrix.stage import MIXED, NEW, OLD, PAIRS, matrix, ran, runner

ACTS = {NEW: "known", MIXED: "fail"}


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """Two of them, run."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for number, folder in enumerate(folders, 1):
        ran(folder, ACTS, shard=Shard(number, 2))
    return folders


def grid(folders: list[Path]) -> list[list[str]]:
    found = collect(folders)
    return [row[:-1] for row in rows(found.outcomes, found.plan)[1]]


def test_shards_together_say_what_the_whole_says(tmp_path: Path, shards: list[Path]) -> None:
    ran(tmp_path / "whole", ACTS)
    assert grid(shards) == grid(shards[::-1]) == grid([tmp_path / "whole"])
    assert exit_code(collect(shards).outcomes) == EXIT_FAILED


def test_the_pairs_of_a_lost_shard_are_infra(shards: list[Path]) -> None:
    found = collect(shards[:1])
    by_pair = {one.pair: one for one in found.outcomes}
    assert list(by_pair) == list(PAIRS)
    assert by_pair[MIXED].code == EXIT_INFRA
    assert by_pair[MIXED].reason == "lost: shard 2/2, which was to run it, is not there"
    assert found.problems == ("shard 2/2 is lost",)
    assert exit_code(found.outcomes) == EXIT_INFRA


def test_the_pairs_that_a_shard_did_not_get_to_are_infra(tmp_path: Path) -> None:
    matrix(tmp_path).save()
    found = collect([tmp_path])
    assert {one.reason for one in found.outcomes} == {"lost: it has not run, though shard 1/1 was to run it"}
    assert exit_code(found.outcomes) == EXIT_INFRA


def gone(folder: Path) -> None:
    shutil.rmtree(folder)


def without_file(folder: Path) -> None:
    (folder / MATRIX).unlink()


def cut(folder: Path) -> None:
    text = (folder / MATRIX).read_text()
    (folder / MATRIX).write_text(text[: len(text) // 2])


def of_another_form(folder: Path) -> None:
    body = json.loads((folder / MATRIX).read_text())
    (folder / MATRIX).write_text(json.dumps({**body, "format": 1}))


def with_a_foreign_result(folder: Path) -> None:
    body = json.loads((folder / MATRIX).read_text())
    body["results"]["kueue-0.1.0+kuberay-1.0.0"] = next(iter(body["results"].values()))
    (folder / MATRIX).write_text(json.dumps(body))


@pytest.mark.parametrize("damage", [gone, without_file, cut, of_another_form, with_a_foreign_result])
def test_a_shard_that_can_not_be_read_is_lost(shards: list[Path], damage: Callable[[Path], None]) -> None:
    damage(shards[1])
    found = collect(shards)
    assert len(found.problems) == 2
    assert {one.pair: one.code for one in found.outcomes} == {NEW: EXIT_OK, MIXED: EXIT_INFRA, OLD: EXIT_OK}
    with pytest.raises(ReportError):
        collect([shards[1]])


def test_a_report_that_was_changed_counts_no_more(shards: list[Path]) -> None:
    records = next((shards[1] / "pairs").glob("*/*embedded/records.jsonl"))
    records.write_text(records.read_text().replace('"fail"', '"pass"'))
    by_pair = {one.pair: one for one in collect(shards).outcomes}
    assert by_pair[MIXED].code == EXIT_INFRA
    assert by_pair[MIXED].reason.startswith("records.jsonl")


def test_a_report_that_is_gone_is_infra(shards: list[Path]) -> None:
    shutil.rmtree(next((shards[0] / "pairs").glob("*")))
    assert exit_code(collect([shards[0]]).outcomes) == EXIT_INFRA


def test_parts_of_different_matrices_are_not_put_together(tmp_path: Path, shards: list[Path]) -> None:
    other = tmp_path / "other"
    runner(matrix(other, Shard(2, 2), [NEW, Pair("1.34.4", "0.18.3", "1.6.2")])).run()
    with pytest.raises(UsageError, match="they differ in pairs"):
        collect([shards[0], other])
    ran(tmp_path / "third", shard=Shard(3, 3))
    with pytest.raises(UsageError, match="cut differently"):
        collect([shards[0], tmp_path / "third"])
    with pytest.raises(UsageError, match="shard 1/2 is there twice"):
        collect([shards[0], shards[1], shards[0]])
    with pytest.raises(UsageError, match="no folder"):
        collect([])


def test_the_json_has_every_pair_and_what_differs(shards: list[Path]) -> None:
    found = collect(shards)
    body = as_json(found.outcomes, found.plan)
    assert [pair["verdict"] for pair in body["pairs"]] == ["green", "FAILED", "green"]
    assert body["exit_code"] == EXIT_FAILED
    assert body["pairs"][1]["differs"] == [
        {
            "test": "suites/deletion_policy/test_table.py::test_policy[row]",
            "default": "known",
            "here": "fail",
            "why": "fail for a reason",
        }
    ]
    assert body["pairs"][0]["suites"] == {"walkthrough": {"pass": 1}, "deletion_policy": {"known": 1}}
