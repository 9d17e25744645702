"""Wires the fixtures in; everything else is in `fixtures/`, which calls `raykueue`."""

pytest_plugins = [
    "fixtures.options",
    "fixtures.gates",
    "fixtures.owner",
    "fixtures.trial",
    "fixtures.rows",
    "fixtures.verdicts",
]
