"""What a gate must not open for: reports that are damaged, do not belong, lack something, or tell of a failure."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_INFRA, EXIT_OK, EXIT_USAGE
from raykueue.matrix.matrix_file import Ran
from raykueue.model.findings import Verdict
from raykueue.report.record import Record
from tests.report.gate.reports import ASKED, IDS, VARYING, VERSIONS, a_matrix, a_record, forge, write
from tests.report.gate.ways import Damage, Ways, asked, stays_closed, with_changed
from tests.report.samples import FACTS, finding

WAYS = Ways()
wrong = WAYS.wrong


@wrong(EXIT_USAGE, "there is no such folder")
def a_folder_that_is_not_there(_: Path, base: Path) -> Sequence[Path]:
    return [base / "nosuch"]


@wrong(EXIT_EMPTY, "no report is in it")
def a_folder_without_a_report(_: Path, base: Path) -> Sequence[Path]:
    (base / "void").mkdir()
    return [base / "void"]


@wrong(EXIT_EMPTY, "no test was selected")
def a_run_of_no_test(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", [])]


@wrong(EXIT_INFRA, "did not finish")
def a_run_that_never_finished(report: Path, _: Path) -> Sequence[Path]:
    (report / "run.json").unlink()
    return [report]


@wrong(EXIT_INFRA, "last line is cut short")
def records_that_are_cut_short(report: Path, _: Path) -> Sequence[Path]:
    records = (report / "records.jsonl").read_bytes()
    (report / "records.jsonl").write_bytes(records[: len(records) // 2])
    return [report]


@wrong(EXIT_INFRA, "records.jsonl: it was changed or damaged")
def records_that_end_at_a_line_too_early(report: Path, _: Path) -> Sequence[Path]:
    lines = (report / "records.jsonl").read_text().splitlines(keepends=True)
    (report / "records.jsonl").write_text("".join(lines[:-1]))
    return [report]


@wrong(EXIT_INFRA, "no record, the first is suites/submission")
def a_record_that_was_taken_out_with_its_digest_made_true(report: Path, _: Path) -> Sequence[Path]:
    lines = (report / "records.jsonl").read_text().splitlines(keepends=True)
    (report / "records.jsonl").write_text("".join(lines[:-1]))
    forge(report)
    return [report]


@wrong(EXIT_INFRA, "run.json is not JSON")
def a_run_json_that_is_cut_short(report: Path, _: Path) -> Sequence[Path]:
    text = (report / "run.json").read_text()
    (report / "run.json").write_text(text[: len(text) // 2])
    return [report]


@wrong(EXIT_INFRA, "run.json")
def a_run_json_that_is_empty(report: Path, _: Path) -> Sequence[Path]:
    (report / "run.json").write_text("")
    return [report]


@wrong(EXIT_INFRA, "records.jsonl: the file is missing")
def records_that_are_missing(report: Path, _: Path) -> Sequence[Path]:
    (report / "records.jsonl").unlink()
    return [report]


@wrong(EXIT_INFRA, "journal.jsonl.gz: the run wrote this file, and it is missing")
def a_journal_that_was_lost_on_the_way(_: Path, base: Path) -> Sequence[Path]:
    report = write(base / "other")
    (report / "journal.jsonl.gz").write_bytes(b"\x1f\x8b")
    run = json.loads((report / "run.json").read_text())
    forge(report, files=run["files"] | {"journal.jsonl.gz": "0" * 64})
    (report / "journal.jsonl.gz").unlink()
    return [report]


@wrong(EXIT_INFRA, "summary.md: it was changed or damaged")
def a_summary_that_was_edited(report: Path, _: Path) -> Sequence[Path]:
    (report / "summary.md").write_text("# GREEN\n")
    return [report]


@wrong(EXIT_INFRA, "line 2: record of")
def a_record_that_breaks_its_schema(report: Path, _: Path) -> Sequence[Path]:
    lines = (report / "records.jsonl").read_text().splitlines(keepends=True)
    (report / "records.jsonl").write_text("".join([lines[0], lines[1].replace('"pass"', '"passed"'), *lines[2:]]))
    return [report]


@wrong(EXIT_INFRA, "its counts are")
def counts_that_contradict_the_records(report: Path, _: Path) -> Sequence[Path]:
    counts = json.loads((report / "run.json").read_text())["counts"]
    forge(report, counts=counts | {"pass": 99})
    return [report]


@wrong(EXIT_INFRA, "its exit code is 5, the records say 0")
def an_exit_code_that_contradicts_the_records(report: Path, _: Path) -> Sequence[Path]:
    forge(report, exit_code=5)
    return [report]


@wrong(EXIT_INFRA, "before it started")
def a_clock_that_ran_backwards(report: Path, _: Path) -> Sequence[Path]:
    forge(report, finished="2026-11-05T09:00:00.000Z")
    return [report]


@wrong(EXIT_INFRA, "it finished in the future (2026-11-05T10:25:11.000Z)")
def a_clock_that_runs_ahead(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", started=ASKED + datetime.timedelta(minutes=4, seconds=1))]


@wrong(EXIT_INFRA, "its tier is node, but embedded clusters are of tier control-plane")
def a_tier_that_its_kind_of_cluster_does_not_have(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", tier="node")]


@wrong(EXIT_USAGE, "run.json is of format 1, this gate reads 2")
def a_report_of_another_schema(report: Path, _: Path) -> Sequence[Path]:
    forge(report, format=1)
    return [report]


@wrong(EXIT_USAGE, "suite 9.9.9 wrote it, this is the gate of suite 0.1.0")
def a_report_of_another_suite(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", suite_version="9.9.9")]


@wrong(EXIT_USAGE, "the suite at ccccccccc wrote it, this is the gate of b7ae8e3c0")
def a_report_of_another_commit(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", commit="c" * 40)]


@wrong(EXIT_USAGE, "the suite that wrote it was changed (b7ae8e3c0-dirty-0a1b2c3d4e5f)")
def a_report_of_a_changed_suite(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", commit=f"{FACTS.commit}-dirty-0a1b2c3d4e5f")]


@wrong(EXIT_USAGE, "it does not say of which commit")
def a_report_of_an_unknown_commit(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", commit="")]


@wrong(EXIT_USAGE, "pinned by another versions.toml")
def a_report_of_other_pins(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", lock_digest="ab" * 32)]


@wrong(EXIT_USAGE, "pinned by another versions.toml (digest unknown")
def a_report_that_does_not_say_what_was_pinned(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", lock_digest="")]


@wrong(EXIT_USAGE, "what ran was not what was pinned (--allow-drift): the webhook's image")
def a_run_on_something_else_than_what_was_pinned(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", drift=("the webhook's image is another",))]


@wrong(EXIT_USAGE, "it ran on a cluster that was there already, whose pins nobody knows: no evidence for a release")
def a_run_on_a_borrowed_cluster(report: Path, base: Path) -> Sequence[Path]:
    return [report, write(base / "other", backend="existing", lock_digest="")]


@wrong(EXIT_USAGE, "kueue 0.99.0 is not in versions.toml")
def a_report_of_a_release_that_nobody_pinned(report: Path, _: Path) -> Sequence[Path]:
    forge(report, pair={**VERSIONS.default.versions(), "kueue": "0.99.0"})
    return [report]


@wrong(EXIT_INFRA, "matrix.json: not JSON")
def a_matrix_whose_file_is_cut_short(report: Path, _: Path) -> Sequence[Path]:
    (report.parent / "matrix.json").write_text('{"results": {')
    return [report.parent]


@wrong(EXIT_INFRA, "it was ended after 60 minutes")
def a_matrix_that_does_not_count_a_report(report: Path, _: Path) -> Sequence[Path]:
    return [a_matrix(report.parent, {VERSIONS.default: Ran(0, "it was ended after 60 minutes", report.name)})]


@wrong(EXIT_USAGE, "it is given twice")
def the_same_report_twice(report: Path, _: Path) -> Sequence[Path]:
    return [report, report]


@wrong(EXIT_USAGE, "which one counts?")
def a_copy_of_a_report(report: Path, base: Path) -> Sequence[Path]:
    shutil.copytree(report, base / "copy")
    return [report, base / "copy"]


@wrong(EXIT_USAGE, "which one counts?")
def a_failure_that_was_run_again_until_it_passed(report: Path, base: Path) -> Sequence[Path]:
    failed = a_record(IDS[0], verdict=Verdict.FAIL, reason="2 pods too many")
    return [write(base / "first", [failed]), report]


@wrong(EXIT_USAGE, "its profile is smoke")
def shards_of_two_profiles(report: Path, base: Path) -> Sequence[Path]:
    return [report, write(base / "other", [a_record("suites/x/test_x.py::test_x")], profile="smoke")]


@wrong(EXIT_INFRA, "no report of it: 4 required tests have not run")
def another_pair_than_the_required_one(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", pair=VERSIONS.pair(kueue="0.16.2", kuberay="1.5.1"))]


@wrong(EXIT_INFRA, "no report of it")
def another_kind_of_cluster_than_the_required_one(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", backend="kind")]


@wrong(EXIT_INFRA, f"{IDS[2]}: required, and no report has it")
def a_shard_that_is_lost(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "half", [a_record(test) for test in (*IDS[:2], VARYING)])]


@wrong(EXIT_INFRA, f"{IDS[1]}: lost: the test was selected but left no record")
def a_test_that_was_lost_in_its_run(_: Path, base: Path) -> Sequence[Path]:
    left = [a_record(test) for test in (IDS[0], IDS[2], VARYING)]
    return [write(base / "other", left, planned=[*IDS, VARYING])]


@wrong(EXIT_INFRA, "the run was interrupted")
def a_run_that_was_interrupted(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", interrupted=True)]


@wrong(EXIT_INFRA, "the recorder died")
def a_run_with_a_problem(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", problems=["the recorder died: signal 9"])]


@wrong(EXIT_INFRA, "the cluster did not start")
def a_cluster_that_did_not_start_so_that_nothing_was_pinned(_: Path, base: Path) -> Sequence[Path]:
    lost = [a_record(one, verdict=Verdict.INFRA, reason="the cluster did not start") for one in (*IDS, VARYING)]
    return [write(base / "other", lost, lock_digest="")]


@wrong(EXIT_INFRA, "required, and skipped: not today")
def a_required_test_that_was_skipped(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", with_changed(IDS[0], verdict=Verdict.SKIPPED, reason="not today"))]


@wrong(EXIT_INFRA, "required on every such pair, and not applicable: no gate")
def a_test_that_must_run_and_did_not_apply(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", with_changed(IDS[0], verdict=Verdict.NOT_APPLICABLE, reason="no gate"))]


@wrong(EXIT_INFRA, "but this pair has submitter-pod-set (kueue pkg/")
def a_test_that_did_not_apply_though_the_pair_has_what_it_needs(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _absent("needs:submitter-pod-set"))]


@wrong(EXIT_INFRA, "but this pair does not have legacy-deletion-policy")
def a_test_that_did_not_apply_though_the_pair_lacks_what_it_must_lack(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _absent("needs:legacy-deletion-policy", "lacks:legacy-deletion-policy"))]


@wrong(EXIT_INFRA, "but there is no gate 'sidecar'")
def a_test_that_did_not_apply_because_of_a_gate_that_nobody_knows(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _absent("needs:sidecar"))]


@wrong(EXIT_INFRA, "but embedded clusters are of tier control-plane")
def a_test_that_did_not_apply_on_the_tier_that_it_needs(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _absent("tier:control-plane"))]


@wrong(EXIT_INFRA, "but exclusive is no obstacle on embedded clusters")
def a_test_that_did_not_apply_to_controllers_that_are_ours(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _absent("exclusive"))]


@wrong(EXIT_INFRA, "required on every such pair, and not applicable: for a reason")
def a_test_that_is_required_where_it_can_not_run(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _absent("tier:node", "faults:nodes"))]


@wrong(EXIT_INFRA, "but this pair has submitter-pod-set")
def a_test_that_nobody_requires_and_that_did_not_apply_for_no_reason(report: Path, base: Path) -> Sequence[Path]:
    changed = {"verdict": Verdict.NOT_APPLICABLE, "reason": "r", "absences": ("needs:submitter-pod-set",)}
    return [report, write(base / "other", [a_record("suites/x/test_x.py::test_x", **changed)])]


@wrong(EXIT_INFRA, "could not be reached")
def a_test_that_could_not_be_judged(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", with_changed(IDS[0], verdict=Verdict.INFRA, reason="it could not be reached"))]


@wrong(EXIT_FAILED, "2 pods too many")
def a_required_test_that_failed(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", with_changed(IDS[0], verdict=Verdict.FAIL, reason="2 pods too many"))]


@wrong(EXIT_FAILED, "2 pods too many")
def a_failure_of_a_test_that_nobody_requires(report: Path, base: Path) -> Sequence[Path]:
    failed = a_record("suites/x/test_x.py::test_x", verdict=Verdict.FAIL, reason="2 pods too many")
    return [report, write(base / "other", [failed])]


@wrong(EXIT_FAILED, "2 pods of RayJob t-7/train")
def a_finding_that_nothing_explains_in_a_test_that_was_not_judged(_: Path, base: Path) -> Sequence[Path]:
    changed = {"verdict": Verdict.INFRA, "reason": "a gap", "findings": (finding(),)}
    return [write(base / "other", with_changed(IDS[0], **changed))]


@wrong(EXIT_FAILED, "known issue KR-4512 explains it, which known-issues.toml does not have")
def a_known_issue_that_is_none_any_more(_: Path, base: Path) -> Sequence[Path]:
    changed = {"verdict": Verdict.KNOWN, "reason": "as recorded", "findings": (finding("known:KR-4512"),)}
    return [write(base / "other", with_changed(IDS[0], **changed))]


@wrong(EXIT_FAILED, "no longer shows")
def a_known_issue_that_its_run_found_vanished(_: Path, base: Path) -> Sequence[Path]:
    gone = a_record("run::fixed-x", verdict=Verdict.FIXED, reason="x no longer shows")
    every = [a_record(test) for test in (*IDS, VARYING)]
    return [write(base / "other", [*every, gone], planned=[one.id for one in every])]


@wrong(EXIT_FAILED, "2 pods too many")
def a_failure_beside_a_damaged_report(report: Path, base: Path) -> Sequence[Path]:
    (report / "summary.md").write_text("# GREEN\n")
    return [report, write(base / "other", with_changed(IDS[0], verdict=Verdict.FAIL, reason="2 pods too many"))]


@wrong(EXIT_USAGE, "given twice")
def a_failure_in_a_question_that_is_put_wrongly(_: Path, base: Path) -> Sequence[Path]:
    failed = write(base / "other", with_changed(IDS[0], verdict=Verdict.FAIL, reason="2 pods too many"))
    return [failed, failed]


@pytest.mark.parametrize(("damage", "code", "words"), WAYS.rows, ids=lambda one: getattr(one, "__name__", ""))
def test_a_gate_stays_closed_for(damage: Damage, code: int, words: str, tmp_path: Path) -> None:
    stays_closed(damage, code, words, tmp_path)


def test_clocks_may_be_apart_by_a_few_minutes(tmp_path: Path) -> None:
    ahead = ASKED + datetime.timedelta(minutes=3, seconds=50)
    assert asked(write(tmp_path, started=ahead)).exit_code == EXIT_OK


def _absent(*absences: str) -> list[Record]:
    return with_changed(VARYING, verdict=Verdict.NOT_APPLICABLE, reason="for a reason", absences=absences)
