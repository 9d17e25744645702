"""How many examples hypothesis tries: 200 in an ordinary run, more if RAYKUEUE_EXAMPLES says so."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "raykueue",
    max_examples=int(os.environ.get("RAYKUEUE_EXAMPLES", "200")),
    deadline=None,  # how long an example takes depends on what else the machine does
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("raykueue")


def pytest_configure() -> None:
    """A shell starts what it runs in the background deaf to ctrl-C, and so would be everything that tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
