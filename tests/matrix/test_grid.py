from __future__ import annotations

from pathlib import Path

from raykueue.matrix.differences import default_among, differences, in_short
from raykueue.matrix.grid import markdown, rows, text
from raykueue.matrix.outcome import outcomes
from raykueue.model.versions import Pair
from tests.matrix.stage import MIXED, NEW, OLD, matrix, runner


def test_the_table_has_a_row_for_each_pair_and_a_column_for_each_suite(tmp_path: Path) -> None:
    done = runner(matrix(tmp_path), {MIXED: "fail", OLD: "crash"}).run()
    head, cells = rows(outcomes(done), done.plan)
    assert head[:5] == ["pair", "class", "verdict", "walkthrough", "deletion_policy"]
    assert [row[:5] for row in cells] == [
        ["0.19.2+1.6.2 *", "pinned", "green", "1", "1"],
        ["0.19.2+1.5.1", "exploratory", "FAILED", "1", "1F"],
        ["0.10.1+1.3.2", "exploratory", "INFRA", "-", "-"],
    ]
    assert [row[5] for row in cells] == [
        "",
        "1 fail",
        "its process ended with code 3 and left no report: Traceback: it broke",
    ]


def test_the_verdict_comes_last_on_a_terminal_and_first_in_markdown(tmp_path: Path) -> None:
    done = runner(matrix(tmp_path), {MIXED: "fail", OLD: "inapplicable"}).run()
    found = outcomes(done)
    said = "FAILED: 1 of 3 pairs green, 1 FAILED, 1 n/a"
    assert text(found, done.plan).rstrip().splitlines()[-1] == f"{said} (exit code 1)"
    page = markdown(found, done.plan)
    assert page.startswith(f"# {said}\n")
    assert "* `suites/deletion_policy/test_table.py::test_policy[row]` pass → **fail**: fail for a reason" in page
    assert "## 0.10.1+1.3.2: n/a" in page
    assert "## 0.19.2+1.6.2" not in page


def test_without_the_default_pair_nothing_is_compared_and_what_is_bad_is_told(tmp_path: Path) -> None:
    done = runner(matrix(tmp_path, default=Pair("1.34.4", "0.18.3", "1.6.2")), {MIXED: "fail"}).run()
    found = outcomes(done)
    page = markdown(found, done.plan)
    assert "nothing is compared" in page
    assert "test_policy[row]` **fail**: fail for a reason" in page
    assert not any(differences(one, default_among(found, done.plan.default)) for one in found)


def test_a_default_pair_that_was_not_judged_is_nothing_to_compare_with(tmp_path: Path) -> None:
    done = runner(matrix(tmp_path), {NEW: "crash"}).run()
    assert default_among(outcomes(done), NEW) is None


def test_what_differs_is_counted_by_what_it_is_here(tmp_path: Path) -> None:
    done = runner(matrix(tmp_path), {MIXED: "inapplicable", OLD: "known"}).run()
    new, mixed, old = outcomes(done)
    assert in_short(differences(mixed, new)) == "2 not-applicable"
    assert in_short(differences(old, new)) == "1 known"
    assert in_short(differences(new, new)) == ""
    assert in_short(differences(new, mixed)) == "2 pass"
