"""What came of one pair: read from its report, believing nothing that can be checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_INFRA, EXIT_INTERRUPTED, EXIT_OK
from raykueue.matrix.matrix_file import MatrixFile, Plan, Ran
from raykueue.matrix.selection import pair_id
from raykueue.model.applicability import doubts
from raykueue.model.findings import Verdict
from raykueue.model.versions import Pair
from raykueue.report.errors import ReportError
from raykueue.report.reading import load
from raykueue.report.record import Record
from raykueue.report.run_info import LoadedReport
from raykueue.report.verdict import DEFECTS

NOT_YET = "it has not run"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one pair."""

    pair: Pair
    code: int
    """As `raykueue.errors` has them; EXIT_EMPTY also where a gate says of every test that the pair does not have it."""
    reason: str = ""
    """In one sentence, where the report does not say it."""
    report: LoadedReport | None = None
    build_seconds: float = 0.0
    seconds: float = 0.0
    lost: bool = False
    """What an earlier run of it found can't be read any more, and no other run brings it back."""

    @property
    def records(self) -> tuple[Record, ...]:
        """Of its report; none if there is no report that can be trusted."""
        return self.report.records if self.report else ()

    def suites(self) -> dict[str, Counter[Verdict]]:
        """Folder below suites/ → how many of its tests have each verdict; "run" is the run itself."""
        counted: dict[str, Counter[Verdict]] = {}
        for record in self.records:
            counted.setdefault(folder_of(record), Counter())[record.verdict] += 1
        return counted

    @property
    def not_applicable(self) -> bool:
        """Every test is, each because of something that is really so."""
        if self.report is None:
            return False
        pair, backend = self.pair.versions(), self.report.run.backend
        tests = [record for record in self.records if not record.of_run]
        return bool(tests) and all(
            record.verdict is Verdict.NOT_APPLICABLE and not doubts(record.absences, pair, backend) for record in tests
        )


def outcome(pair: Pair, ran: Ran | None, folder: Path, plan: Plan) -> Outcome:
    """What came of a pair whose process ended so."""
    if ran is None:
        return Outcome(pair, EXIT_INFRA, NOT_YET)
    code, reason, report = EXIT_INFRA, ran.reason, None
    if ran.report:
        where = folder / ran.report
        try:
            report = load(where)
            reason = reason or _contradiction(pair, ran, report, plan)
        except ReportError as error:  # a grid tells the pair, and has no room for the path
            reason = reason or _without(where, error)
        else:
            code = report.run.exit_code if not reason else EXIT_INFRA
    elif ran.code == EXIT_INTERRUPTED:
        code = EXIT_INTERRUPTED
    lost = False
    if code != EXIT_FAILED:
        try:
            failed = _failed_before(ran, folder)
        except ReportError as error:
            code, lost = EXIT_INFRA, True
            reason = f"what its run before found can't be read any more, begin anew: {_without(folder, error)}"
        else:
            code, reason = (EXIT_FAILED, _since(failed, code, reason, report)) if failed else (code, reason)
    reason = reason or ("" if report else "it left no report")
    return Outcome(pair, code, reason, report, ran.build_seconds, ran.seconds, lost)


def outcomes(one: MatrixFile) -> tuple[Outcome, ...]:
    """Of every pair of a shard."""
    return tuple(outcome(pair, one.results.get(pair_id(pair)), one.folder, one.plan) for pair in one.mine)


def settled(one: Outcome) -> bool:
    """Whether it need not run again: everything was found out, or never will be. A failure alone is not everything."""
    if one.lost:
        return True
    if one.report is None or one.report.run.interrupted:
        return False
    judged = all(record.verdict is not Verdict.INFRA for record in one.records)
    return judged and one.code in (EXIT_OK, EXIT_FAILED, EXIT_EMPTY)


def exit_code(every: Iterable[Outcome], *, interrupted: bool = False) -> int:
    """Of a whole matrix, by the same precedence as of a run (`raykueue.report.verdict`).

    A pair on which nothing ran is no success of the others: unless a gate said so of every test, it is infrastructure.
    """
    found = list(every)
    codes = {one.code for one in found}
    if EXIT_FAILED in codes:
        return EXIT_FAILED
    if interrupted or EXIT_INTERRUPTED in codes:
        return EXIT_INTERRUPTED
    if EXIT_INFRA in codes or not found:
        return EXIT_INFRA
    if codes == {EXIT_EMPTY}:
        return EXIT_EMPTY
    return EXIT_INFRA if any(one.code == EXIT_EMPTY and not one.not_applicable for one in found) else EXIT_OK


def folder_of(record: Record) -> str:
    """The folder below suites/ that a test is in; "run" for records of the run itself."""
    if record.of_run:
        return "run"
    parts = PurePosixPath(record.id.split("::", 1)[0]).parts
    return parts[1] if len(parts) > 2 else parts[-1]


def _failed_before(ran: Ran, folder: Path) -> tuple[Record, str] | None:
    """What failed in an earlier run, and which that was. Raises ReportError if one is lost."""
    for earlier in ran.earlier:
        for record in load(folder / earlier).records:
            if record.verdict in DEFECTS or any(one.raised for one in record.findings):
                return record, earlier
    return None


def _since(failed: tuple[Record, str], code: int, reason: str, report: LoadedReport | None) -> str:
    """What became of it: that it passes now explains nothing."""
    record, earlier = failed
    now = {one.id: one.verdict for one in report.records} if report else {}
    if code == EXIT_OK or now.get(record.id) in (Verdict.PASS, Verdict.KNOWN):
        return f"{record.id} failed in {earlier}, and does not any more: a failure that comes and goes"
    return f"{record.id} failed in {earlier}, and was not judged again{f': {reason}' if reason else ''}"


def _without(folder: Path, error: ReportError) -> str:
    return str(error).removeprefix(f"{folder}: ").removeprefix(f"{folder}/")


def _contradiction(pair: Pair, ran: Ran, report: LoadedReport, plan: Plan) -> str:
    run = report.run
    if dict(run.pair) != pair.versions():
        return f"its report is about {dict(run.pair)}, not about {pair}"
    if run.facts.profile != plan.profile:
        return f"its report is of profile {run.facts.profile}, not {plan.profile}"
    if run.facts.commit != plan.commit:
        return f"its report is by the suite at {run.facts.commit or 'no commit'}, the matrix at {plan.commit}"
    if run.facts.drift:
        return f"what ran was not what was pinned: {run.facts.drift[0]}"
    if ran.code != run.exit_code:
        return f"its process ended with {ran.code}, its report says {run.exit_code}"
    return ""
