"""In place of pytest: `fake_pytest.py ACT --kueue … --kuberay … --report-dir …` writes the report that ACT says."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import raykueue
from raykueue.model.findings import Verdict
from raykueue.report.folder import ReportFolder
from raykueue.report.provenance import commit_of
from raykueue.report.record import Record, suite_of, utc
from raykueue.report.run_info import RunFacts

TESTS = ("suites/walkthrough/test_deploy.py::test_runs", "suites/deletion_policy/test_table.py::test_policy[row]")

ABSENT, THERE = "needs:deletion-strategy-default", "needs:submitter-pod-set"
"""What some pairs of the stage have not, and what each of them has."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("act")
    for name in ("kueue", "kuberay", "kubernetes", "report-dir", "profile"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    pair = {name: getattr(arguments, name) for name in ("kueue", "kuberay", "kubernetes")}
    say(f"acting {arguments.act} on {pair}")
    return act(arguments.act, pair, Path(arguments.report_dir), arguments.profile)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def act(what: str, pair: dict[str, str], folder: Path, profile: str) -> int:
    if what == "crash":
        say("Traceback: it broke")
        return 3
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    interrupted = what in ("fail-and-cut", "fail-and-late")
    if what in ("hang", "stubborn"):
        interrupted = hang(deaf=what == "stubborn")
    if what == "foreign":
        pair = {**pair, "kueue": "0.1.0"}
    if what == "other-profile":
        profile = "full"
    verdicts = {
        "fail": [Verdict.PASS, Verdict.FAIL],
        "known": [Verdict.PASS, Verdict.KNOWN],
        "fail-and-infra": [Verdict.FAIL, Verdict.INFRA],
        "fail-and-cut": [Verdict.FAIL],
        "fail-and-late": [Verdict.PASS, Verdict.FAIL],
        "fixed-and-infra": [Verdict.FIXED, Verdict.INFRA],
        "infra": [Verdict.PASS, Verdict.INFRA],
        "infra-and-pass": [Verdict.INFRA, Verdict.PASS],
        "inapplicable": [Verdict.NOT_APPLICABLE] * 2,
        "excused": [Verdict.NOT_APPLICABLE] * 2,
        "skipped": [Verdict.SKIPPED] * 2,
        "hang": [Verdict.PASS],
    }.get(what, [Verdict.PASS] * 2)
    absent = ABSENT if what == "inapplicable" else THERE
    code = report(pair, folder, profile, verdicts, absent, interrupted=interrupted)
    return 1 if what == "liar" else code


def hang(*, deaf: bool) -> bool:
    asked = threading.Event()
    signal.signal(signal.SIGTERM, signal.SIG_IGN if deaf else lambda *_: asked.set())
    say("hanging")
    while not asked.wait(0.05):
        pass
    return True


def report(
    pair: dict[str, str], folder: Path, profile: str, verdicts: list[Verdict], absent: str, *, interrupted: bool
) -> int:
    now = datetime.now(UTC)
    made = ReportFolder.create(folder, pair, "embedded", now)
    made.plan(TESTS)
    for test, verdict in zip(TESTS, verdicts, strict=False):
        reason = "" if verdict is Verdict.PASS else f"{verdict.value} for a reason"
        absences = (absent,) if verdict is Verdict.NOT_APPLICABLE else ()
        made.add(Record(test, suite_of(test), "It works.", verdict, utc(now), reason, absences, phases={"call": 1.0}))
    facts = RunFacts(tier="control-plane", profile=profile, commit=commit_of(Path(raykueue.__file__)))
    return made.finish(facts, now, interrupted=interrupted).run.exit_code


if __name__ == "__main__":
    sys.exit(main())
