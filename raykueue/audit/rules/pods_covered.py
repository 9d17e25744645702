"""Rule `pods-covered`: while a hold is open, the pods it pays for ask no more than it is charged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import ClassVar

from raykueue.audit.books.changes import Change, HoldChange, JobChange, PodChange, QueueChange
from raykueue.audit.books.entities import Hold, Pod, PodState, Queue
from raykueue.audit.books.fold import Books
from raykueue.audit.rules.account import Account, Excess
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Moment
from raykueue.model.findings import Class, Finding
from raykueue.model.quantities import describe_all

_CLASS: dict[str, Class] = {
    "under-count": "contract",
    "never-charged": "contract",
    "extra-pods": "hazard",
    "scale-down": "hazard",
}
_TELLS = {
    "under-count": "a pod asks more than it is charged",
    "never-charged": "nobody is charged for its pods",
    "extra-pods": "there are more pods than it is charged for",
    "scale-down": "its pods outlive the charge that was scaled down",
}
_SHOWN = 20


class PodsCovered(Rule):
    """PodSet by PodSet, and per resource that the ClusterQueue covers."""

    name: ClassVar[str] = "pods-covered"
    sentence: ClassVar[str] = "while a hold is open, the pods that it pays for ask no more than it is charged"
    klass: ClassVar[Class] = "contract"
    why: ClassVar[str] = "pods beyond the charge use quota that somebody else was promised"
    source: ClassVar[str] = "kueue apis/kueue/v1beta2/workload_types.go:299-304@v0.19.2"
    sees: ClassVar[frozenset[type | str] | None] = frozenset({PodChange, HoldChange, JobChange, QueueChange})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._accounts: dict[str, dict[str, Account]] = defaultdict(dict)
        self._places: dict[str, Account] = {}
        self._by_queue: dict[str, set[str]] = defaultdict(set)
        self._excesses: list[Excess] = []

    def see(self, change: Change) -> None:
        match change:
            case PodChange():
                self._pod(change.pod, change.after, change.moment)
            case HoldChange():
                self._hold(change)
            case JobChange():
                for uid in sorted(change.job.pods):
                    pod = self.books.pod(uid)
                    if pod is not None:
                        self._pod(pod, pod.state, change.moment)
            case QueueChange() if _covers(change.before) != _covers(change.after):
                for payer in sorted(self._by_queue.get(change.name, ())):
                    self._recharge(payer, change.moment)

    def findings(self) -> Iterator[Finding]:
        for excess in self._excesses:
            yield self._finding(excess)

    def forget(self, scope: Scope) -> None:
        self._excesses = [e for e in self._excesses if not scope.owns(e.account.namespace, e.account.cluster_queue)]
        for payer, accounts in list(self._accounts.items()):
            idle = not any(account.pods() for account in accounts.values())
            if idle and all(scope.owns(a.namespace, a.cluster_queue) and a.hold is None for a in accounts.values()):
                del self._accounts[payer]
        for name in [name for name, payers in self._by_queue.items() if not payers]:
            del self._by_queue[name]

    def _pod(self, pod: Pod, state: PodState | None, moment: Moment) -> None:
        """Its demand goes to the account it belongs to now; gone, ended and gated pods ask nothing."""
        account = self._account(pod, state) if state is not None else None
        last = self._places.get(pod.ref.uid)
        if last is not None and last is not account:
            del self._places[pod.ref.uid]
            last.put(pod, {})
            self._settle(last, moment)
        if account is not None and state is not None and not (last is account and account.asks(pod, state.demand)):
            self._places[pod.ref.uid] = account
            account.put(pod, state.demand)
            self._settle(account, moment)

    def _account(self, pod: Pod, state: PodState) -> Account | None:
        if not pod.job.judged:
            return None
        hold = state.payer
        if hold is not None and hold.end is None:
            accounts = self._accounts[hold.payer]
            if pod.pod_set not in accounts:
                accounts[pod.pod_set] = Account(pod.job, hold, pod.pod_set, self.books.queues.get(_queue(hold)))
                self._by_queue[_queue(hold)].add(hold.payer)
            return accounts[pod.pod_set]
        if hold is None and pod.never_charged and not pod.before_journal:
            return self._accounts[pod.job.ref.uid].setdefault("", Account(pod.job, None, "", None))
        return None

    def _hold(self, change: HoldChange) -> None:
        payer = change.hold.payer
        if change.after is not None:
            if change.before is not None and payer in self._accounts:
                self._by_queue[change.before.cluster_queue].discard(payer)
                self._by_queue[change.after.cluster_queue].add(payer)
                self._recharge(payer, change.moment)
            return
        self._by_queue[_queue(change.hold)].discard(payer)
        for account in self._accounts.pop(payer, {}).values():
            for uid in account.pods():
                self._places.pop(uid, None)
            account.close(change.moment)

    def _recharge(self, payer: str, moment: Moment) -> None:
        for account in self._accounts[payer].values():
            account.recharge(self.books.queues.get(_queue(account.hold)) if account.hold else None)
            self._settle(account, moment)

    def _settle(self, account: Account, moment: Moment) -> None:
        self._excesses += account.settle(moment)
        siblings = self._accounts.get(account.payer, {}).values()
        for one in siblings:
            one.unmask(siblings)

    def _finding(self, excess: Excess) -> Finding:
        account, window = excess.account, excess.window
        seconds = window.seconds(self.now)
        refs = [account.job.ref, *([account.hold.ref] if account.hold else []), *excess.pods.values()]
        where = f"PodSet {account.pod_set}" if account.pod_set else "its pods"
        asks = (
            f"{account.job.ref}: {where} ask{'s' if account.pod_set else ''} {describe_all(window.peak)} more than "
            f"{'is charged to ' + str(account.hold) if account.hold else 'nothing'} "
            f"{lasting(seconds, still=window.end is None)}: {_TELLS[excess.cause]}"
        )
        by_number = excess.cause in ("extra-pods", "scale-down")
        details = [
            f"{excess.most} live, charged for {excess.charged_for}" if by_number else "",
            f"not in the Workload's template: {', '.join(sorted(excess.strange))}" if excess.strange else "",
            "masked: the job's total still fits" if excess.masked else "",
        ]
        return Finding(
            id=finding_id(self.name, f"{account.payer} {account.pod_set} {excess.cause}", window.begin.rev),
            rule=self.name,
            klass=_CLASS[excess.cause],
            cause=excess.cause,
            text="; ".join([asks, *(d for d in details if d)]),
            objects=tuple(refs[:_SHOWN]),
            begin=window.begin,
            end=window.end,
            namespace=account.namespace,
            cluster_queue=account.cluster_queue,
            payer=account.hold.payer if account.hold else "",
            peak=window.peak,
            resource_seconds=window.resource_seconds(self.now),
            seconds=(seconds, seconds),
        )


def _queue(hold: Hold) -> str:
    return hold.charge.cluster_queue


def _covers(queue: Queue | None) -> frozenset[str] | None:
    return queue.spec.covered if queue is not None else None
