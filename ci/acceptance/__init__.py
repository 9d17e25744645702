"""Acceptance: everything that was promised, tried from a fresh clone."""
