from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

import pytest

from raykueue.pages.command import FOLDER, PAGE, RESULTS, deletion_policies, run
from raykueue.pages.deletion_policies import page
from raykueue.pages.results import Results, merged, read, write
from raykueue.report.costs import Cost

DEFAULT = {"kubernetes": "1.34.4", "kueue": "0.19.2", "kuberay": "1.6.2"}
OLD = {"kubernetes": "1.34.4", "kueue": "0.10.1", "kuberay": "1.3.2"}
COST = Cost("shutdown-on-success-queued-k8sjob", 0.5, {"cpu": 1000.0}, 0.0, 420.0)
FOUND = {"KubeRay 1.6.2, Kueue 0.19.2": Results({"shutdown-on-success-queued-k8sjob": "pass"}, (COST,))}


def row(text: str, begins: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {begins}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_is_current() -> None:
    assert (FOLDER / PAGE).read_text(encoding="utf-8") == deletion_policies(), "run `raykueue docs deletion-policies`"


def test_the_last_results_are_as_they_are_written() -> None:
    text = (FOLDER / RESULTS).read_text(encoding="utf-8")
    assert write(read(text)) == text


def test_it_says_which_policy_is_safe_on_which_pair() -> None:
    text = page([DEFAULT, OLD], DEFAULT, FOUND)
    new, old = row(text, "KubeRay 1.6.2, Kueue 0.19.2"), row(text, "KubeRay 1.3.2, Kueue 0.10.1")
    assert new[1] == old[1] == old[2] == "safe"
    assert new[2].startswith("**leaks** if the job is stopped")
    assert new[3].endswith("the head is unpaid until Kueue suspends the cluster")
    assert old[3] == "**leaks the head, for ever**"
    assert new[6] == "refused by KubeRay"
    assert old[6] == "not there"


def test_pairs_of_which_the_same_is_told_share_a_row() -> None:
    also = [OLD | {"kuberay": "1.4.2"}, OLD | {"kueue": "0.14.0"}, OLD | {"kueue": "0.14.0", "kuberay": "1.4.2"}]
    text = page([DEFAULT, OLD, *also], DEFAULT, FOUND)
    assert row(text, "KubeRay 1.3.2 or 1.4.2, Kueue 0.10.1 or 0.14.0")[3] == "**leaks the head, for ever**"
    assert "On KubeRay 1.3.2 or 1.4.2 the gate" in text


def test_it_says_what_a_policy_costs_and_how_the_last_run_went() -> None:
    text = page([DEFAULT], DEFAULT, FOUND)
    assert "| shutdown-on-success-queued-k8sjob | 0.5 s | 1.0 core-s | 0.0 s | 420 ms |" in text
    assert "* KubeRay 1.6.2, Kueue 0.19.2: 1 rows, 1 pass" in text


def test_without_results_it_says_so() -> None:
    text = page([DEFAULT], DEFAULT, {})
    assert "Not measured yet." in text
    assert "None yet." in text


def test_every_table_has_as_many_cells_in_every_line() -> None:
    for block in re.findall(r"(?:^\|.*\n)+", page([DEFAULT, OLD], DEFAULT, FOUND), re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1, block


def test_a_run_replaces_what_it_ran_and_keeps_the_rest() -> None:
    new = Results({"other": "known"}, (Cost("other", 1.0),))
    both = merged(FOUND, "KubeRay 1.6.2, Kueue 0.19.2", new)["KubeRay 1.6.2, Kueue 0.19.2"]
    assert both.verdicts == {"shutdown-on-success-queued-k8sjob": "pass", "other": "known"}
    assert {cost.row for cost in both.costs} == {COST.row, "other"}
    assert read(write(merged({}, "pair", new))) == {"pair": new}


def test_the_command_writes_it_and_says_when_it_is_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = Namespace(page="deletion-policies", report=None, check=True)
    assert run(asked, tmp_path) == 1
    assert run(Namespace(page="deletion-policies", report=None, check=False), tmp_path) == 0
    assert run(asked, tmp_path) == 0
    assert "is current" in capsys.readouterr().out
