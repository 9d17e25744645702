"""Why a command of Go or pip failed, told from its output: one clear message that says what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path

from raykueue.errors import ToolchainError
from raykueue.toolchain.process import Output
from raykueue.toolchain.store import full_disk

LINES = 15
"""How many of the last lines of output a message carries."""

_REASONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"checksum mismatch|SECURITY ERROR"),
        (
            "what was downloaded is not what the Go checksum database knows: don't use it; look at GOPROXY and "
            "GOSUMDB, and clean the module cache (`go clean -modcache`) if it was damaged"
        ),
    ),
    (
        re.compile(
            r"dial tcp|no such host|connection (refused|reset)|i/o timeout|TLS handshake|proxyconnect|x509:"
            r"|unexpected EOF|context deadline exceeded|network is unreachable|Failed to establish a new connection"
            r"|(?i:temporary failure in name resolution)|module lookup disabled|: (40[347]|410|429|50\d) "
        ),
        (
            "the registry can't be reached, or refuses this version: check the network and GOPROXY (for pip: its "
            "index), then try again; what was downloaded is kept"
        ),
    ),
    (
        re.compile(r"signal: killed|cannot allocate memory|out of memory"),
        "the compiler was killed, most likely for want of memory: free some, or set GOMAXPROCS=1, then try again",
    ),
    (re.compile(r"No module named pip"), "this Python has no pip"),
)
_OTHERWISE = "this is no fault of network or disk: the lines below say what Go objects to"


def explain(command: str, output: Output, cache: Path) -> ToolchainError:
    """The error for a command that ended with another code than 0."""
    text = _errors_in(output)
    tail = "\n".join(text.splitlines()[-LINES:])
    seen = f"`{command}` ended with code {output.code}; its last lines:\n{tail}"
    if re.search(r"no space left on device|Disk quota exceeded", text, re.IGNORECASE):
        return full_disk(cache, seen)
    hint = next((hint for pattern, hint in _REASONS if pattern.search(text)), _OTHERWISE)
    return ToolchainError(f"{hint}.\n{seen}")


def _errors_in(output: Output) -> str:
    # `go mod download -json` reports its failure in its answer on standard output.
    try:
        answer = json.loads(output.out)
    except ValueError:
        return output.text
    reason = answer.get("Error", "") if isinstance(answer, dict) else ""
    return f"{output.err}\n{reason}".strip()
