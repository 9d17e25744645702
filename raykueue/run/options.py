"""What a run was asked for on the command line, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from raykueue.errors import UsageError

Backend: TypeAlias = Literal["embedded", "kind", "existing"]
Profile: TypeAlias = Literal["smoke", "core", "full"]
BACKENDS: tuple[str, ...] = get_args(Backend)
PROFILES: tuple[str, ...] = get_args(Profile)

DEFAULT_CLUSTER = "default"
"""The name that `raykueue up` and `--reuse-cluster` use if none is given."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of one run."""

    cluster: str = "embedded"
    context: str | None = None
    kueue: str | None = None
    kuberay: str | None = None
    kubernetes: str | None = None
    reuse: str | None = None
    """Name of a cluster that was left up."""
    report_dir: Path = Path("reports")
    profile: str = "core"
    keep: bool = False
    """The cluster stays up after the run."""
    name: str | None = None
    """Of the cluster, if it is to stay."""
    node_image: str | None = None
    """Of kind's nodes, instead of the pinned one."""
    kubeconfig: Path | None = None
    """Where an existing cluster's context is looked up, instead of where kubectl does."""
    allow_drift: bool = False
    """Test what runs even if it is not what was pinned."""

    def checked(self) -> RunOptions:
        """Itself.

        Raises:
            UsageError: options that don't go together, or a backend that this version doesn't have.
        """
        if self.cluster not in BACKENDS:
            raise UsageError(f"--cluster {self.cluster}: there are {', '.join(BACKENDS)}")
        if self.cluster == "existing" and not self.context:
            raise UsageError("--cluster existing needs --context NAME: no cluster is ever guessed")
        if self.context and self.cluster != "existing":
            raise UsageError(f"--context {self.context} goes with --cluster existing only")
        if self.keep and self.cluster != "kind":
            raise UsageError("--keep-cluster goes with --cluster kind; `raykueue up` starts an embedded one that stays")
        if self.cluster == "existing" and self.reuse:
            raise UsageError(f"--reuse-cluster={self.reuse} goes with clusters that this suite has started")
        if self.profile not in PROFILES:
            raise UsageError(f"--profile {self.profile}: there are {', '.join(PROFILES)}")
        return self

    def must_fit(self, pair: Mapping[str, str]) -> None:
        """Whether the cluster that is attached to is what was asked for.

        Args:
            pair: the versions that it runs.

        Raises:
            UsageError: it runs others.
        """
        for product, runs in pair.items():
            wanted = getattr(self, product)
            if wanted is not None and wanted.removeprefix("v") != runs:
                raise UsageError(
                    f"cluster {self.reuse} runs {product} {runs}, but {wanted} was asked for; "
                    f"`raykueue down {self.reuse}`, or leave the option away"
                )
