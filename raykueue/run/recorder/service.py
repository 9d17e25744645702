"""What test processes and the owner can ask the recorder, over its socket."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from raykueue.errors import UsageError
from raykueue.model.events import Marker
from raykueue.model.journal import SLICE
from raykueue.run.answers import finding_to_json
from raykueue.run.recorder.barriers import Barriers
from raykueue.run.recorder.intake import Intake, OpenScope
from raykueue.run.recorder.judging import JUDGE_S, judge
from raykueue.run.recorder.scopes import ScopeNames
from raykueue.run.wire import Peer


class Service:
    """Answers requests; `gone` closes what a connection left open.

    Requests, and their answers:
        open {scope: ScopeNames} → {events}: from now on its events are pushed, those already recorded first
        close {scope} → {}
        mark {what, about} → {}
        barrier {} → {rev, t}
        judge {scope, deadline_s} → {findings, handovers, circumstances, obligations, problems, rev, judged_ms}
        slice {scope, path} → {records, bytes}
        unscoped {} → {findings, problems}
        stats {} → see `raykueue.run.recorder.stats`
    """

    def __init__(self, intake: Intake, barriers: Barriers, stats: Callable[[], Mapping[str, Any]]) -> None:
        self._intake = intake
        self._barriers = barriers
        self._stats = stats
        self._scopes: dict[Peer, set[str]] = {}

    async def handle(self, peer: Peer, do: str, arguments: dict[str, Any]) -> Mapping[str, Any]:
        """The answer to one request.

        Raises:
            RecorderError: it can't be answered, because something is missing in the record.
            UsageError: no such request, scope or name.
        """
        match do:
            case "open":
                return self._open(peer, ScopeNames.from_json(arguments["scope"]))
            case "close":
                return self._close(arguments["scope"])
            case "mark":
                self._intake.mark(arguments["what"], arguments.get("about") or {})
                return {}
            case "barrier":
                passed = await self._barriers.barrier()
                return {"rev": passed.rev, "t": passed.arrived}
            case "judge":
                return await self._judge(arguments["scope"], float(arguments.get("deadline_s", JUDGE_S)))
            case "slice":
                return await self._slice(arguments["scope"], Path(arguments["path"]))
            case "unscoped":
                return await self._unscoped()
            case "stats":
                return self._stats()
        raise UsageError(f"recorder: no request {do!r}; see raykueue.run.recorder.service")

    def gone(self, peer: Peer) -> None:
        """The connection ended: so do its scopes."""
        for name in sorted(self._scopes.pop(peer, set())):
            self._intake.close(name, why="its test process is gone")

    def _open(self, peer: Peer, names: ScopeNames) -> Mapping[str, Any]:
        prefix = f'{{"push":"event","scope":{json.dumps(names.name)},"record":'
        # No await in between: what is recorded goes out first, then what arrives, nothing twice.
        events = self._intake.open(OpenScope(names, push=lambda line: peer.push(prefix + line + "}")))
        self._scopes.setdefault(peer, set()).add(names.name)
        return {"events": events}

    def _close(self, scope: str) -> Mapping[str, Any]:
        self._intake.close(scope)
        for names in self._scopes.values():
            names.discard(scope)
        return {}

    async def _judge(self, scope: str, deadline_s: float) -> Mapping[str, Any]:
        names, opened = self._intake.router.find(scope)
        intake = self._intake
        judged = await judge(
            names, intake.auditor, self._barriers.barrier, intake.problems, opened.arrivals, deadline_s
        )
        findings = [finding_to_json(one) for one in judged.findings]
        problems = list(judged.problems)
        opened.judged = {"rev": judged.rev, "arrived": judged.arrived, "findings": findings, "problems": problems}
        return {
            "findings": findings,
            "handovers": [one.to_json() for one in judged.handovers],
            "circumstances": {key: asdict(one) for key, one in judged.circumstances.items()},
            "obligations": [{"rule": one.rule, "text": one.text, "until": one.until} for one in judged.obligations],
            "problems": problems,
            "rev": judged.rev,
            "judged_ms": round(judged.judged_ms, 1),
        }

    async def _slice(self, scope: str, path: Path) -> Mapping[str, Any]:
        names, opened = self._intake.router.find(scope)
        offsets = self._intake.journal.offsets(names.all_keys(), opened.since)
        about = {"scope": asdict(names), "judged": opened.judged}
        end = Marker(SLICE, time.time_ns(), about, self._intake.written.highest)
        # Compressing takes long enough to be heard in the arrival times, so not in this thread.
        await asyncio.to_thread(self._intake.journal.save, offsets, path, end)
        return {"records": len(offsets) + 1, "bytes": path.stat().st_size}

    async def _unscoped(self) -> Mapping[str, Any]:
        await self._barriers.barrier()
        auditor = self._intake.auditor
        scopes = [*self._intake.closed, *(scope.names for scope in self._intake.router.open_values())]
        findings = () if auditor.broken else auditor.ledger.unscoped(scopes)
        problems = [*self._intake.problems, *([auditor.broken] if auditor.broken else [])]
        return {"findings": [finding_to_json(one) for one in findings], "problems": problems}
