"""docs/rules.md says what the code does: its sentences, classes, thresholds, bounds, and the tests of its examples."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from importlib import resources
from pathlib import Path

import pytest

from raykueue.audit.explanations import Allowance
from raykueue.audit.rules import RULES, Rule
from raykueue.audit.tables import read_allowances
from raykueue.audit.thresholds import Thresholds

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
LINE = 120

# Journals that must fire, and that must stay silent.
EXAMPLES = {
    "books-match": (5, 6),
    "pods-covered": (5, 6),
    "no-survivors": (8, 4),
    "no-overlap": (3, 4),
    "quota-respected": (4, 5),
    "one-workload": (4, 5),
    "suspended-means-empty": (4, 6),
    "finished-stays-finished": (4, 5),
    "placed-as-assigned": (4, 5),
    "nothing-left": (4, 4),
    "released-in-time": (4, 4),
}
NUMBERS = {name: f"R{number}" for number, name in enumerate(EXAMPLES, 1)}
ALLOWANCES = read_allowances(resources.files("raykueue").joinpath("allowances.toml").read_text(encoding="utf-8"))

every_rule = pytest.mark.parametrize("name", EXAMPLES)


def sections() -> dict[str, str]:
    """By name of the rule, in the page's order: from its heading to the next one of any rule or section."""
    found = re.finditer(r"^### (R\d+) `([a-z-]+)`\n(.*?)(?=^##)", PAGE, re.M | re.S)
    listed = [(one[1], one[2], one[3]) for one in found]
    assert [number for number, _, _ in listed] == [f"R{n}" for n in range(1, len(listed) + 1)]
    return {name: text for _, name, text in listed}


def plain(text: str) -> str:
    """Without line breaks and quotation marks of Markdown."""
    return " ".join(re.sub(r"^> ", "", text, flags=re.M).split())


def quotes(section: str) -> list[tuple[str, str]]:
    """(class, sentence) of each block quote."""
    blocks = re.findall(r"(?:^> .*\n)+", section, re.M)
    matches = [re.fullmatch(r"\*\*(\w+)\*\*: (.+)", plain(block)) for block in blocks]
    return [(one[1], one[2]) for one in matches if one is not None]


def bullets(section: str, name: str) -> list[str]:
    """The text of each bullet of that name."""
    return [plain(text) for text in re.findall(rf"^\* \*\*{name}\*\*: (.*(?:\n  .*)*)", section, re.M)]


def tables(text: str, head: str) -> Iterator[tuple[str, list[list[str]]]]:
    """(head, rows of cells) of each table whose head begins so."""
    for match in re.finditer(rf"^(\| {re.escape(head)}.*)\n\|[-|]+\n((?:\|.*\n)+)", text, re.M):
        yield match[1], [[cell.strip() for cell in row[1:-1].split("|")] for row in match[2].splitlines()]


def rows(text: str, head: str) -> list[list[str]]:
    return [row for _, table in tables(text, head) for row in table]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names of the test functions of a file."""
    module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(one.name for one in module.body if isinstance(one, ast.FunctionDef) and one.name[:5] == "test_")


def examples(section: str) -> list[tuple[str, str, str]]:
    """(F1, file, name of the test) of each row."""
    found: list[tuple[str, str, str]] = []
    for head, table in tables(section, "example | test in"):
        (path,) = quoted(head)
        found += [(example, path, quoted(test)[0]) for example, test in table]
    return found


def of(name: str) -> list[type[Rule]]:
    return [rule for rule in RULES if rule.name == name]


def bound(allowance: Allowance) -> str:
    formula = allowance.bounds.at_most_seconds
    return "no bound" if formula == float("inf") else f"`{formula}`"


def test_every_rule_has_a_section_in_the_order_of_their_numbers() -> None:
    assert list(sections()) == list(EXAMPLES)
    assert {rule.name for rule in RULES} == set(EXAMPLES)


@every_rule
def test_the_section_quotes_the_rules_sentence_and_class(name: str) -> None:
    assert quotes(sections()[name]) == [(rule.klass, rule.sentence) for rule in of(name)]


@every_rule
def test_the_section_says_why_it_matters_and_where_it_is_promised(name: str) -> None:
    section = sections()[name]
    assert bullets(section, "Matters") == [rule.why for rule in of(name)]
    assert bullets(section, "Source") == [rule.source for rule in of(name)]


@every_rule
def test_the_section_names_the_rules_thresholds(name: str) -> None:
    told = [quoted(text) for text in bullets(sections()[name], "Thresholds")]
    assert told == [list(rule.thresholds) for rule in of(name)]


@every_rule
def test_the_section_lists_every_example_and_what_it_comes_to(name: str) -> None:
    fires, silent = EXAMPLES[name]
    wanted = [f"F{n}" for n in range(1, fires + 1)] + [f"S{n}" for n in range(1, silent + 1)]
    section = sections()[name]
    verdicts = {example: verdict for example, _, verdict in rows(section, "example | what happens | expected")}
    assert list(verdicts) == wanted
    assert not [e for e in wanted if e.startswith("F") and verdicts[e].startswith("silent")]
    assert sorted({example for example, _, _ in examples(section)}) == sorted(wanted)


@every_rule
def test_every_example_is_a_test_that_says_so_in_its_name(name: str) -> None:
    for example, path, test in examples(sections()[name]):
        assert test.startswith(f"test_{example.lower()}_"), test
        assert test in functions_of(path), f"{path} has no {test}"


@every_rule
def test_every_test_of_an_example_is_on_the_page(name: str) -> None:
    listed = [(path, test) for _, path, test in examples(sections()[name])]
    paths = {path for path, _ in listed}
    there = {(path, test) for path in paths for test in functions_of(path) if re.match(r"test_[fs]\d+_", test)}
    assert set(listed) == there
    assert len(listed) == len(there)


def test_every_test_that_the_page_names_exists() -> None:
    everywhere = {
        test for path in (ROOT / "tests").rglob("test_*.py") for test in functions_of(str(path.relative_to(ROOT)))
    }
    names = re.findall(r"(?:(tests/[\w/]+\.py)::)?\b(test_\w+)\b(?!\.py)", PAGE)
    assert len(names) > sum(map(sum, EXAMPLES.values()))
    for path, test in names:
        assert test in (functions_of(path) if path else everywhere), f"{path or 'tests/'} has no {test}"


def test_every_path_of_this_repository_that_the_page_names_exists() -> None:
    paths = set(re.findall(r"`((?:raykueue|tests|suites|ci|docs)/[\w./-]+)`", PAGE))
    paths |= {f"docs/{path}" for path in re.findall(r"\]\(([\w./-]+)\)", PAGE)}
    assert paths
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_every_threshold_is_listed_with_its_default_and_who_uses_it() -> None:
    names = [one.name for one in fields(Thresholds)]
    places = {float(place): name for place, name in enumerate(names)}
    in_bounds = {places[place]: told for told, place in Thresholds(**{n: p for p, n in places.items()}).names().items()}
    in_allowances = {word for one in ALLOWANCES for word in re.findall(r"\w+", str(one.bounds.at_most_seconds))}
    wanted = []
    for name in names:
        users = [NUMBERS[rule.name] for rule in RULES if name in rule.thresholds]
        users = sorted(set(users), key=lambda number: int(number[1:]))
        users += ["allowances"] if in_bounds.get(name) in in_allowances else []
        default = getattr(Thresholds(), name)
        told = f"`{in_bounds[name]}`" if name in in_bounds else "–"  # noqa: RUF001 - as the page writes "none"
        wanted.append([f"`{name}`", f"{default:g} s", told, ", ".join(users)])
    assert rows(PAGE, "threshold | default") == wanted


def test_every_threshold_has_a_reason() -> None:
    reasons = {quoted(name)[0]: reason for name, reason in rows(PAGE, "threshold | reason")}
    assert list(reasons) == [one.name for one in fields(Thresholds)]
    assert all(reasons.values())


@every_rule
def test_every_allowance_is_told_with_its_bound_and_nothing_else_is(name: str) -> None:
    allowed = {one.cause: bound(one) for one in ALLOWANCES if one.rule == name}
    told = {cause.strip("`"): most for cause, _, _, most in rows(sections()[name], "cause | class")}
    assert {cause: most for cause, most in told.items() if most != "nothing"} == allowed


@every_rule
def test_causes_and_their_classes_are_those_of_the_code(name: str) -> None:
    told = {cause.strip("`"): klass for cause, klass, _, _ in rows(sections()[name], "cause | class")}
    assert told
    for rule in of(name):
        module = vars(sys.modules[rule.__module__])
        classes: dict[str, str] = module.get("_CLASS", {})
        assert {cause: told.get(cause) for cause in classes} == classes
        assert set(module.get("_TELLS", {})) <= set(told)


def test_no_line_of_the_page_is_too_long() -> None:
    assert not [number for number, line in enumerate(PAGE.splitlines(), 1) if len(line) > LINE]
