"""Free ports on loopback."""

from __future__ import annotations

import random
import socket
import threading

from raykueue.errors import ClusterError

# Outside the range that systems hand out for outgoing connections (32768 to 60999 on Linux): a port found free there
# was taken by somebody's connection before the API server bound it, once in 35 starts. All have five digits, because a
# saved cluster has them rewritten in place.
_FIRST, _LAST = 10240, 29999
_TRIES = 200


class Ports:
    """Hands out each port once, by purpose; for any number of threads."""

    def __init__(self) -> None:
        self._by_purpose: dict[str, int] = {}
        self._lock = threading.Lock()

    def __call__(self, purpose: str) -> int:
        """The port for `purpose`: free when first asked for, the same ever after.

        Raises:
            ClusterError: none was found.
        """
        with self._lock:
            if purpose not in self._by_purpose:
                self._by_purpose[purpose] = self._find()
            return self._by_purpose[purpose]

    def table(self) -> dict[str, int]:
        """All ports handed out, by purpose."""
        with self._lock:
            return dict(self._by_purpose)

    def restore(self, table: dict[str, int]) -> None:
        """Takes over the ports of a cluster that runs already."""
        self._by_purpose = dict(table)

    def _find(self) -> int:
        taken = set(self._by_purpose.values())
        for _ in range(_TRIES):
            port = random.randint(_FIRST, _LAST)  # noqa: S311 - not a secret
            if port not in taken and _is_free(port):
                return port
        raise ClusterError(f"no free port between {_FIRST} and {_LAST} on 127.0.0.1 after {_TRIES} tries")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
