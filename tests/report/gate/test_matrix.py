"""A gate reads what a matrix leaves: the file is the matrix's own, written by its own writer."""

from __future__ import annotations

from pathlib import Path

from raykueue.errors import EXIT_INFRA, EXIT_OK
from raykueue.matrix.matrix_file import MATRIX, MatrixFile, Ran, plan_of
from raykueue.matrix.selection import Shard, pair_id
from raykueue.report.gate import evidence
from tests.report.gate.reports import VERSIONS, answer, write


def a_matrix(folder: Path, ran: Ran) -> Path:
    pair = VERSIONS.default
    MatrixFile(folder, plan_of([pair], pair, "core", []), Shard(), {pair_id(pair): ran}).save()
    return folder


def test_the_report_that_a_matrix_counts_is_read(tmp_path: Path) -> None:
    report = write(tmp_path / "pairs" / pair_id(VERSIONS.default))
    write(tmp_path / "pairs" / pair_id(VERSIONS.default))
    assert evidence.MATRIX == MATRIX
    assert answer(a_matrix(tmp_path, Ran(0, report=str(report.relative_to(tmp_path))))).exit_code == EXIT_OK


def test_what_a_matrix_does_not_count_is_refused_with_its_reason(tmp_path: Path) -> None:
    report = write(tmp_path / "pairs" / pair_id(VERSIONS.default))
    ran = Ran(-9, "it was ended by signal 9", str(report.relative_to(tmp_path)))
    decision = answer(a_matrix(tmp_path, ran))
    assert decision.exit_code == EXIT_INFRA
    assert decision.objections[0].what == "kueue-0.19.2+kuberay-1.6.2: it was ended by signal 9"
