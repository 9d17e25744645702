"""What can go wrong with a report itself."""

from __future__ import annotations

from raykueue.errors import InfraError


class ReportError(InfraError):
    """A report can't be written, or what is on disk is not what a finished run wrote: damaged or incomplete."""
