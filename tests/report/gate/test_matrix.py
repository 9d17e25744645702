"""A gate reads what a matrix leaves: the file is the matrix's own, written by its own writer."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from raykueue.errors import EXIT_FAILED, EXIT_INFRA, EXIT_OK
from raykueue.matrix.matrix_file import MATRIX, Ran
from raykueue.matrix.selection import pair_id
from raykueue.model.findings import Verdict
from raykueue.report.gate.decision import Decision
from tests.report.gate.reports import IDS, VARYING, VERSIONS, a_matrix, a_record, answer, write
from tests.report.samples import FACTS

PAIR = VERSIONS.default
OTHER = VERSIONS.pair(kueue="0.16.2", kuberay="1.5.1")
NAME = "kueue-0.19.2+kuberay-1.6.2"


def counted(folder: Path, code: int = 0, reason: str = "", **facts: Any) -> Ran:
    """The pair ran, and the matrix counts its report unless there is a reason."""
    report = write(folder / "pairs" / pair_id(PAIR), **facts)
    return Ran(code, reason, str(report.relative_to(folder)))


def told(decision: Decision) -> list[str]:
    return [one.what for one in decision.objections]


def test_the_report_that_a_matrix_counts_is_read_and_the_others_beside_it_are_not(tmp_path: Path) -> None:
    failed = a_record(IDS[0], verdict=Verdict.INFRA, reason="no memory was left")
    write(tmp_path / "pairs" / pair_id(PAIR), [failed])
    assert answer(a_matrix(tmp_path, {PAIR: counted(tmp_path)})).exit_code == EXIT_OK


def test_what_a_matrix_does_not_count_is_refused_with_its_reason(tmp_path: Path) -> None:
    decision = answer(a_matrix(tmp_path, {PAIR: counted(tmp_path, -9, "it was ended by signal 9")}))
    assert (decision.exit_code, told(decision)) == (EXIT_INFRA, [f"{NAME}: it was ended by signal 9"])


def test_a_report_that_does_not_count_proves_a_failure_all_the_same(tmp_path: Path) -> None:
    failed = a_record(IDS[0], verdict=Verdict.FAIL, reason="2 pods too many")
    report = write(tmp_path / "pairs", [failed, *map(a_record, (*IDS[1:], VARYING))])
    ran = Ran(1, "it was not over after 60 minutes", str(report.relative_to(tmp_path)))
    assert answer(a_matrix(tmp_path, {PAIR: ran})).exit_code == EXIT_FAILED


@pytest.mark.parametrize(
    ("code", "facts", "words"),
    [
        (1, {}, "its process ended with 1, its report says 0"),
        (-9, {}, "its process ended with -9, its report says 0"),
        (0, {"pair": OTHER}, "its report is about"),
        (0, {"profile": "smoke"}, "its report is of profile smoke, not core"),
        (0, {"commit": "c" * 40}, f"its report is by the suite at {'c' * 40}, the matrix at {FACTS.commit}"),
        (0, {"drift": ("an image is another",)}, "what ran was not what was pinned: an image is another"),
    ],
)
def test_a_report_that_contradicts_its_matrix_is_refused(
    code: int, facts: dict[str, Any], words: str, tmp_path: Path
) -> None:
    decision = answer(a_matrix(tmp_path, {PAIR: counted(tmp_path, code, **facts)}))
    assert decision.exit_code != EXIT_OK
    assert [what for what in told(decision) if what.startswith(f"{NAME}: {words}")], told(decision)


def test_a_matrix_that_was_interrupted_is_refused(tmp_path: Path) -> None:
    decision = answer(a_matrix(tmp_path, {PAIR: counted(tmp_path)}, interrupted=True))
    assert (decision.exit_code, told(decision)) == (EXIT_INFRA, ["the matrix was interrupted"])


def test_a_pair_of_the_shard_that_has_no_result_is_refused_though_no_gate_requires_it(tmp_path: Path) -> None:
    decision = answer(a_matrix(tmp_path, {PAIR: counted(tmp_path)}, [PAIR, OTHER]))
    assert (decision.exit_code, told(decision)) == (EXIT_INFRA, ["kueue-0.16.2+kuberay-1.5.1: it has not run"])


def test_a_pair_that_left_no_report_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "other")
    decision = answer(a_matrix(tmp_path / "matrix", {PAIR: Ran(0)}), tmp_path / "other")
    assert (decision.exit_code, told(decision)) == (EXIT_INFRA, [f"{NAME}: it left no report"])


def test_what_failed_in_a_run_before_is_a_failure_and_no_report_to_refuse(tmp_path: Path) -> None:
    failed = a_record(IDS[0], verdict=Verdict.FAIL, reason="2 pods too many")
    before = write(tmp_path / "pairs" / "before", [failed, *map(a_record, (*IDS[1:], VARYING))])
    ran = dataclasses.replace(counted(tmp_path), earlier=(str(before.relative_to(tmp_path)),))
    decision = answer(a_matrix(tmp_path, {PAIR: ran}))
    assert (decision.exit_code, [one.kind for one in decision.objections]) == (EXIT_FAILED, ["failed"])
    assert "does not any more: a failure that comes and goes" in told(decision)[0]


def test_a_report_that_is_gone_is_told_once(tmp_path: Path) -> None:
    write(tmp_path / "other")
    decision = answer(a_matrix(tmp_path / "matrix", {PAIR: Ran(0, report="x")}), tmp_path / "other")
    assert decision.exit_code == EXIT_INFRA
    (what,) = told(decision)
    assert what.startswith("there is no report")


@pytest.mark.parametrize("shard", ["0/0", "2/1"])
def test_a_matrix_that_is_no_shard_is_refused(shard: str, tmp_path: Path) -> None:
    a_matrix(tmp_path, {PAIR: counted(tmp_path)})
    body = json.loads((tmp_path / MATRIX).read_text())
    (tmp_path / MATRIX).write_text(json.dumps(body | {"shard": shard}))
    decision = answer(tmp_path)
    assert [what for what in told(decision) if what.startswith("matrix.json: --shard")], told(decision)


def test_a_pair_that_is_none_of_the_shard_is_refused(tmp_path: Path) -> None:
    a_matrix(tmp_path, {PAIR: counted(tmp_path)})
    body = json.loads((tmp_path / MATRIX).read_text())
    body["results"][pair_id(OTHER)] = body["results"][pair_id(PAIR)]
    (tmp_path / MATRIX).write_text(json.dumps(body))
    assert [what for what in told(answer(tmp_path)) if "which is none of it" in what]
