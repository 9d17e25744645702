"""Every error of the project, in one tree.

    AssertionError
      ProductDefect          the product did not do what was required: a test that raises it has *failed*
        FindingError         the ledger found something that nothing explains
        WaitFailed           a state can't be reached any more, or was not reached in time
    Exception
      InfraError             we could not find out: a test that raises it is *broken*, the run is not green
        ClusterError         a cluster can't be started, reached or stopped
          ComponentDied      one of its processes ended by itself
          ClusterLocked      another run holds the cluster
          Drifted            what runs is not what was pinned
        ToolchainError       a binary can't be built, or is not what was pinned
        RecorderError        the record of events has a hole: a gap, a lost connection, a missing barrier
      UsageError             the caller asked for something that does not exist

Every message names the object, what was expected, what was seen, and what to do.
"""

from __future__ import annotations

__all__ = [
    "EXIT_EMPTY",
    "EXIT_FAILED",
    "EXIT_INFRA",
    "EXIT_INTERRUPTED",
    "EXIT_OK",
    "EXIT_USAGE",
    "ClusterError",
    "ClusterLocked",
    "ComponentDied",
    "Drifted",
    "FindingError",
    "InfraError",
    "ProductDefect",
    "RecorderError",
    "ToolchainError",
    "UsageError",
    "WaitFailed",
]

EXIT_OK = 0
"""Green, or only known defects."""
EXIT_FAILED = 1
"""The product failed, or a recorded defect no longer shows."""
EXIT_INTERRUPTED = 2
EXIT_INFRA = 3
"""We could not find out: infrastructure, or an internal error."""
EXIT_USAGE = 4
EXIT_EMPTY = 5
"""Nothing ran."""


class ProductDefect(AssertionError):
    """The product did not do what was required of it."""


class FindingError(ProductDefect):
    """The ledger found something that nothing explains. The message tells each finding as a person would."""


class WaitFailed(ProductDefect):
    """A state was not reached: wanted, last seen, and why are in the message."""


class InfraError(Exception):
    """Whatever kept us from finding out. Never green, and never the product's fault."""

    exit_code = EXIT_INFRA


class ClusterError(InfraError):
    """A cluster can't be started, reached or stopped."""


class ComponentDied(ClusterError):
    """A process of the cluster ended by itself; the message carries the last lines of its log."""


class ClusterLocked(ClusterError):
    """Another run holds this cluster; the message says which."""


class Drifted(ClusterError):
    """What runs is not what versions.toml pins; the message says each difference."""


class ToolchainError(InfraError):
    """A binary can't be built, or is not what versions.toml pins."""


class RecorderError(InfraError):
    """The record of events has a hole, so nothing can be judged over that time."""


class UsageError(Exception):
    """The caller asked for something that does not exist; the message lists what does."""

    exit_code = EXIT_USAGE
