"""Records with arbitrary text in them, as a product's error messages might bring it along."""

from __future__ import annotations

from hypothesis import strategies as st

from raykueue.model.findings import Verdict
from raykueue.report.record import JudgedFinding, Record, Replaced, Scope
from tests.report.samples import STARTED, finding

NASTY = [
    "a | b\n| c |",
    "\x1b[31mred\x1b[0m",
    "]]> & <b>\"'",
    "```\nnot code\n```",
    "\ud800",
    "\x00\x08\x7f\x85\u2028",
    "# no heading",
    "\\",
    "\\|",
    "`",
    "",
]
ABSENCES = ["needs:sidecar-mode", "lacks:submitter-pod-set", "tier:node", "faults:nodes", "exclusive"]
texts = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_categories=())),
    st.lists(st.sampled_from(NASTY), max_size=4).map("".join),
)
said = texts.filter(bool)


@st.composite
def findings(draw: st.DrawFn) -> JudgedFinding:
    explained = draw(st.sampled_from(["", "expects", "known:KR-4512", "allowance:no-survivors/job-failed"]))
    return finding(
        explained,
        text=draw(texts),
        cause=draw(texts),
        peak=draw(st.dictionaries(texts, st.integers(), max_size=2)),
        part_of=draw(st.sampled_from(["", "f0"])),
    )


@st.composite
def records(draw: st.DrawFn) -> Record:
    judged = tuple(draw(st.lists(findings(), max_size=3)))
    fitting = [v for v in Verdict if v not in (Verdict.PASS, Verdict.KNOWN) or not any(each.raised for each in judged)]
    verdict = draw(st.sampled_from(fitting))
    absent = verdict is Verdict.NOT_APPLICABLE
    return Record(
        id=draw(said),
        suite=draw(texts),
        sentence=draw(texts),
        verdict=verdict,
        started=STARTED,
        reason=draw(said),
        absences=tuple(draw(st.lists(st.sampled_from(ABSENCES), min_size=absent, unique=True))),
        failure=draw(texts),
        findings=judged,
        phases=draw(st.dictionaries(st.sampled_from(["setup", "call"]), st.floats(0, 1e6))),
        worker=draw(texts),
        scope=Scope(draw(texts), draw(st.dictionaries(texts, texts, max_size=2))),
        notes=tuple(draw(st.lists(texts, max_size=2))),
        journal=draw(texts),
        reproduce=draw(texts),
        moments=draw(st.dictionaries(texts, st.floats(-1e9, 1e9), max_size=2)),
        replaced=tuple(draw(st.lists(st.builds(Replaced, said, texts, texts), max_size=2))),
    )
