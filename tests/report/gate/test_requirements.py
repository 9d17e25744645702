from __future__ import annotations

import pytest

from raykueue.errors import UsageError
from raykueue.model.deletion.selection import core, smoke
from raykueue.model.versions import Pair
from raykueue.report.gate.required import parse
from tests.report.gate.reports import IDS, REQUIRED, VARYING, VERSIONS

OLD = VERSIONS.pair(kueue="0.10.1", kuberay="1.3.2")
TABLE = "suites/deletion_policy/test_table.py::test_policy"


def test_the_default_gate_is_meant_if_none_is_named() -> None:
    required = parse(REQUIRED)
    assert required.gate(None) is required.gate("one")
    with pytest.raises(UsageError, match="gate 'three' is not known; known: one, two"):
        required.gate("three")


def test_what_must_run_in_one_set_must_run() -> None:
    cells = parse(REQUIRED.replace(VARYING, IDS[0])).gate("one").cells(VERSIONS, ())
    assert list(cells.values()) == [dict.fromkeys(IDS, True)]


def test_classes_of_pairs_come_from_versions_toml() -> None:
    text = REQUIRED.replace('pairs = ["default"]', 'pairs = ["pinned", "supported"]')
    cells = parse(text).gate("one").cells(VERSIONS, ())
    classes = ("pinned", "supported")
    assert {cell.kueue for cell in cells} == {pair.kueue for pair in VERSIONS.pairs if pair.klass in classes}
    assert len(cells) > 1


@pytest.mark.parametrize("pair", [VERSIONS.default, OLD], ids=str)
def test_rows_are_those_that_the_pair_has(pair: Pair) -> None:
    versions = pair.versions()
    for name, rows in (("smoke", smoke(versions)), ("core", core(versions))):
        tests = parse(REQUIRED.replace(VARYING, f"{TABLE}[{{{name}}}]")).sets["varying"].ids(versions)
        assert tests == [f"{TABLE}[{row.id}]" for row in rows]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("format = 1", "format = 2", "format"),
        ("format = 1", "format = ", "not TOML"),
        ('default = "one"', 'default = "other"', "gate 'other' is not known"),
        ('sets = ["always"]', 'sets = ["sometimes"]', "set 'sometimes', which is not there"),
        ("must_run = true", "", "must_run"),
        ('pairs = ["named"]', 'pairs = ["all"]', "all"),
        ('backend = "embedded"', 'backend = "cloud"', "cloud"),
        ('backend = "embedded"', 'backend = "existing"', "existing"),
        (VARYING, "suites/*", "suites/"),
        (VARYING, "suites/x/test_x.py::test_x[{nosuch}]", "nosuch"),
        ("[gates.two]", '[[retired]]\ntests=["suites/x"]\nwhy="w"\nuntil="soon"\n[gates.two]', "soon"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_the_reason(old: str, new: str, words: str) -> None:
    with pytest.raises(UsageError, match=r"^x\.toml: ") as refused:
        parse(REQUIRED.replace(old, new), "x.toml")
    assert words in str(refused.value)
