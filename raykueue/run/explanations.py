"""The two files that may explain a finding, read once per process."""

from __future__ import annotations

import functools
from importlib import resources

from raykueue.audit.explanations import Allowance, KnownIssue
from raykueue.audit.tables import read_allowances, read_known_issues
from raykueue.errors import UsageError


@functools.cache
def known_issues() -> list[KnownIssue]:
    """Defects of the products that are recorded.

    Raises:
        UsageError: the file is malformed; the message has the entry and what to do.
    """
    try:
        return read_known_issues(_text("known-issues.toml"))
    except ValueError as error:
        raise UsageError(str(error)) from error


@functools.cache
def allowances() -> list[Allowance]:
    """What a pair does in ordinary operation. Raises UsageError as `known_issues` does."""
    try:
        return read_allowances(_text("allowances.toml"))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _text(name: str) -> str:
    return resources.files("raykueue").joinpath(name).read_text(encoding="utf-8")
