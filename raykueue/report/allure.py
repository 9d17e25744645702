"""What Allure is told beside the tests' own results: versions, and how results fall into categories.

Written at the end of the session by the owner, once: `--clean-alluredir` removes what is there before, and with xdist
each process would write its own. The categories rely on `verdict.message`: its prefix is the verdict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raykueue.model.findings import Verdict
from raykueue.report.errors import ReportError
from raykueue.report.run_info import RunInfo

_ENVIRONMENT = "environment.properties"
_CATEGORIES = "categories.json"


def environment(run: RunInfo) -> dict[str, str]:
    """What the results were made with, for `environment.properties`."""
    facts = run.facts
    every = {
        **run.pair,
        **facts.versions,
        "backend": run.backend,
        "tier": facts.tier,
        "profile": facts.profile,
        "versions digest": facts.lock_digest,
        "suite": facts.suite_version,
        "suite commit": facts.commit,
    }
    return {name: value for name, value in every.items() if value}


def properties_text(values: Mapping[str, str]) -> str:
    """A Java properties file in plain ASCII, one `key=value` a line, in the given order.

    Escapes are those of java.util.Properties.load: backslashes, line breaks, everything that is not ASCII, and in keys
    blanks and separators.
    """
    return "".join(f"{_key(name)}={_value(value)}\n" for name, value in values.items())


def categories() -> list[dict[str, Any]]:
    """The contents of categories.json.

    Allure holds `messageRegex` against the whole message, line breaks included; allure-pytest puts one word before
    what was said (the exception's class, `Skipped:`, `XFAIL`).
    """
    fixed, known, absent = (_says(verdict) for verdict in (Verdict.FIXED, Verdict.KNOWN, Verdict.NOT_APPLICABLE))
    return [
        {"name": "Product defects", "matchedStatuses": ["failed"], "messageRegex": f"(?s)(?!{fixed}).*"},
        {
            "name": "Recorded defects that no longer show",
            "matchedStatuses": ["failed"],
            "messageRegex": f"(?s){fixed}",
        },
        {"name": "Infrastructure: could not be found out", "matchedStatuses": ["broken", "unknown"]},
        {"name": "Known upstream defects", "matchedStatuses": ["skipped"], "messageRegex": f"(?s){known}"},
        {
            "name": "Not applicable to this pair or cluster",
            "matchedStatuses": ["skipped"],
            "messageRegex": f"(?s){absent}",
        },
        {"name": "Skipped", "matchedStatuses": ["skipped"], "messageRegex": f"(?s)(?!{known})(?!{absent}).*"},
    ]


def write_allure(results: Path, run: RunInfo) -> None:
    """Writes both files into a folder of Allure results, which is made if it does not exist.

    Raises:
        ReportError: the disk refuses.
    """
    try:
        results.mkdir(parents=True, exist_ok=True)
        (results / _ENVIRONMENT).write_text(properties_text(environment(run)), "ascii")
        (results / _CATEGORIES).write_text(json.dumps(categories(), indent=2) + "\n", "ascii")
    except OSError as error:
        raise ReportError(f"{results}: Allure's files can't be written ({error})") from error


def _says(verdict: Verdict) -> str:
    return rf"(?:[\w.]+:? )?{verdict.value}: .*"


def _key(name: str) -> str:
    escaped = _value(name)
    for character in " :=#!":
        escaped = escaped.replace(character, f"\\{character}")
    return escaped


def _value(value: str) -> str:
    escaped = " ".join(value.split()).replace("\\", "\\\\")
    return "".join(each if " " <= each <= "~" else _unicode_escape(each) for each in escaped)


def _unicode_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
