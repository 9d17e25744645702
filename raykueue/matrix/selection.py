"""Which pairs a matrix has, and which of them one shard runs. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from raykueue.errors import UsageError
from raykueue.model.versions import Pair, PairClass, Versions

T = TypeVar("T")

CLASSES: dict[str, tuple[PairClass, ...]] = {
    "pinned": ("pinned",),
    "supported": ("pinned", "supported"),
    "all": ("pinned", "supported", "exploratory"),
    "exploratory": ("exploratory",),
}
"""Words that `--pairs` knows, and the classes that each takes in: a supported pair is one that should work."""

_SHARD = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of so many parts of a matrix."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """From "2/3".

        Raises:
            UsageError: it is none.
        """
        match = _SHARD.fullmatch(text)
        number, of = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= number <= of:
            raise UsageError(f"--shard {text}: expected i/n with 1 <= i <= n, such as 2/3")
        return cls(number, of)

    def part(self, every: Sequence[T]) -> tuple[T, ...]:
        """What is in it. Every nth, so that all shards get of the new and of the old."""
        return tuple(every[self.number - 1 :: self.of])

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def choose(said: str, versions: Versions) -> tuple[Pair, ...]:
    """The pairs that `--pairs` names, in the order of versions.toml: newest first.

    Args:
        said: a word out of `CLASSES`, `default`, or pairs as KUEUE+KUBERAY with commas between them.
        versions: which there are.

    Raises:
        UsageError: it names none, or a version that is not there.
    """
    if said == "default":
        return (versions.default,)
    if said in CLASSES:
        return tuple(pair for pair in versions.pairs if pair.klass in CLASSES[said])
    named = set()
    for part in said.split(","):
        kueue, plus, kuberay = part.strip().partition("+")
        if not (kueue and plus and kuberay):
            raise UsageError(
                f"--pairs {said}: expected default, {', '.join(CLASSES)}, or pairs as KUEUE+KUBERAY such as "
                f"{versions.default.kueue}+{versions.default.kuberay}, with commas between them"
            )
        named.add(versions.pair(kueue=kueue, kuberay=kuberay))
    return tuple(pair for pair in versions.pairs if pair in named)


def pair_id(pair: Pair) -> str:
    """As folders and files name it: "kueue-0.19.2+kuberay-1.6.2"."""
    return f"kueue-{pair.kueue}+kuberay-{pair.kuberay}"


def short(pair: Pair) -> str:
    """As the command line takes it: "0.19.2+1.6.2"."""
    return f"{pair.kueue}+{pair.kuberay}"
