"""A cluster for an experiment: the same owner, recorder and trials that tests have, without pytest."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from raykueue.errors import InfraError
from raykueue.run.answers import Judgement
from raykueue.run.options import RunOptions
from raykueue.run.owner import Owner
from raykueue.run.queue import Queue
from raykueue.run.recorder.config import JOURNAL
from raykueue.run.session import Session
from raykueue.run.trial import Trial

SIDE_BY_SIDE = 8


class Laboratory:
    """One cluster, and trials on it."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session = session
        self.journal = folder / JOURNAL

    @contextlib.contextmanager
    def trial(self, queue: str = "queue.yaml", *, alone: bool = False) -> Iterator[tuple[Trial, Queue]]:
        """A scope of its own; `alone`: while there is no other, since it ends components."""
        lease = self.session.lease(alone=alone)
        trial = Trial(self.session, lease, "ci/experiments")
        try:
            yield trial, trial.queue(queue)
            trial.end_jobs()
        finally:
            trial.close()
            lease.release()

    def findings(self, trial: Trial) -> Judgement:
        """What the ledger says of a trial, expected or not."""
        trial.end_jobs()
        return self.session.recording.judge(trial.names.scope)


@contextlib.contextmanager
def laboratory() -> Iterator[Laboratory]:
    """Starts a cluster of the default pair, and ends it."""
    folder = Path(tempfile.mkdtemp(prefix="rk-"))
    failed: list[InfraError] = []
    owner = Owner(RunOptions(), folder, folder / "journals", say, failed.append)
    owner.start()
    try:
        session = Session(owner.socket)
        yield Laboratory(session, folder)
        session.close()
    finally:
        owner.close()
        shutil.rmtree(folder, ignore_errors=True)


def repeat(times: int, once: Callable[[int], Iterable[str]], side_by_side: int = SIDE_BY_SIDE) -> Counter[str]:
    """Runs `once(number)` many times and counts the answers, with progress."""
    counts: Counter[str] = Counter()
    done = threading.Lock()
    finished = 0

    def one(number: int) -> None:
        nonlocal finished
        answers = list(once(number))
        with done:
            counts.update(answers or ["nothing"])
            finished += 1
            if finished % SIDE_BY_SIDE == 0 or finished == times:
                say(f"{finished} of {times}: {dict(counts)}")

    with ThreadPoolExecutor(side_by_side) as pool:
        list(pool.map(one, range(times)))
    return counts


def tell(question: str, counts: Counter[str], times: int) -> None:
    """Prints an answer as a table."""
    print(f"\n{question}\n")
    for answer, count in counts.most_common():
        print(f"  {count:5d}  {answer}")
    print(f"  {times:5d}  times tried")


def say(line: str) -> None:
    """Progress."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
