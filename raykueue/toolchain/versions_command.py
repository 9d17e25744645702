"""`raykueue versions`: which releases and pairs there are, and whether versions.toml says the truth about them."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from raykueue.errors import EXIT_FAILED, EXIT_OK
from raykueue.toolchain.builder import to_stderr
from raykueue.toolchain.golang import find_go
from raykueue.toolchain.lock import check_form, load_versions
from raykueue.toolchain.store import Store, cache_root
from raykueue.toolchain.verify import verify

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - the type has no public name

_EXAMPLES = """\
examples:
  raykueue versions list            every pair and its class
  raykueue versions list --json     for programs
  raykueue versions verify          checks form, checksums, and what each module says of the others

The classes: `pinned`, Kueue's own go.mod names this KubeRay release; `supported`, it names another patch release of
the same minor; `exploratory`, neither. `verify` exits with 1 if anything differs; it downloads what Go's module cache
lacks, up to 0.4 GB.
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds the sub-command; its namespace has `run`, which takes the arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "versions",
        help="show the pairs, and verify versions.toml",
        description="Shows what versions.toml pins, and holds it against the modules themselves.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="show every pair and its class")
    listing.add_argument("--json", action="store_true", help="for programs")
    listing.set_defaults(run=_list)
    verifying = actions.add_parser("verify", help="hold versions.toml against the modules themselves")
    verifying.set_defaults(run=_verify)


def _list(arguments: argparse.Namespace) -> int:
    versions = load_versions()
    if arguments.json:
        pairs = [{**pair.versions(), "class": pair.klass} for pair in versions.pairs]
        body = {
            "default": versions.default.versions(),
            "pairs": pairs,
            "releases": [dataclasses.asdict(release) for release in versions.releases],
        }
        sys.stdout.write(json.dumps(body, indent=1) + "\n")
        return EXIT_OK
    lines = [f"{'KUEUE':10}{'KUBERAY':10}{'KUBERNETES':12}{'CLASS':13}"]
    for pair in versions.pairs:
        remark = "default" if pair == versions.default else ""
        if pair.klass == "supported":
            remark = f"Kueue names {versions.named_by[pair.kueue]}"
        lines.append(f"{pair.kueue:10}{pair.kuberay:10}{pair.kubernetes:12}{pair.klass:13}{remark}".rstrip())
    sys.stdout.write("\n".join(lines) + "\n")
    return EXIT_OK


def _verify(_: argparse.Namespace) -> int:
    check_form()
    versions = load_versions()
    store = Store(cache_root())
    go = find_go(versions, store, to_stderr, lambda: None)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="raykueue-verify-") as scratch:
        for one in verify(versions, go, Path(scratch)):
            wrong += bool(one.wrong)
            sys.stdout.write(f"{'WRONG' if one.wrong else 'ok':7}{one.release}  {one.wrong}".rstrip() + "\n")
            sys.stdout.flush()
    of = f"{len(versions.releases)} releases, {len(versions.pairs)} pairs"
    sys.stdout.write(f"versions.toml: {wrong} of {of} differ\n" if wrong else f"versions.toml is true: {of}\n")
    return EXIT_FAILED if wrong else EXIT_OK
