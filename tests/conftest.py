"""How many examples hypothesis tries: 200 in an ordinary run, more if RAYKUEUE_EXAMPLES says so."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "raykueue",
    max_examples=int(os.environ.get("RAYKUEUE_EXAMPLES", "200")),
    derandomize="RAYKUEUE_EXAMPLES" not in os.environ,  # the same examples each time; ci/properties looks for new ones
    deadline=None,  # how long an example takes depends on what else the machine does
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("raykueue")


def pytest_configure() -> None:
    """What a shell runs in the background, or nohup, is deaf to ctrl-C or SIGHUP, and so is what tests start there."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
