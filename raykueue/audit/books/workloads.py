"""Which Workloads a job has, by the UID of their controller: Kueue promises one."""

from __future__ import annotations

from collections import defaultdict

from raykueue.model import views
from raykueue.model.events import Object
from raykueue.model.workloads import FINISHED


class WorkloadBook:
    """Existing Workloads by owner, in order of creation. Those without a controller are nobody's."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, Object]] = defaultdict(dict)
        self._owner: dict[str, str] = {}

    def apply(self, workload: Object, *, gone: bool) -> None:
        """A Workload was written or removed."""
        uid = views.uid(workload)
        owner = views.controller(workload)
        now = owner.uid if owner is not None and not gone else ""
        last = self._owner.pop(uid, "")
        if last and last != now:
            del self._of[last][uid]
            if not self._of[last]:
                del self._of[last]
        if now:
            self._owner[uid] = now
            self._of[now][uid] = workload

    def of(self, owner: str) -> list[Object]:
        """Oldest first, finished and deleting ones included."""
        return sorted(self._of.get(owner, {}).values(), key=_created)


def unfinished(workload: Object) -> bool:
    """It may still gain or hold quota; being deleted doesn't finish it."""
    return not views.is_true(workload, FINISHED)


def _created(workload: Object) -> str:
    return str(workload["metadata"].get("creationTimestamp") or "")
