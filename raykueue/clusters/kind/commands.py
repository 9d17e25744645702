"""Runs docker and kind: with a deadline, ended when the run is, tried again after errors that pass by themselves."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from raykueue.errors import ClusterError
from raykueue.toolchain.process import Output, run

NETWORK = "KIND_EXPERIMENTAL_DOCKER_NETWORK"
"""The variable by which kind is told which network to put nodes into: one a cluster, so it is a command's mark, too."""
TRIES = 3
_LINES = 12
"""Of a failed command's output in the message."""

_TRANSIENT = re.compile(
    # A port that was free when it was chosen (kind's, for the API server) is somebody else's by now.
    r"port is already allocated|address already in use"
    # Networks and registries.
    r"|TLS handshake timeout|i/o timeout|connection reset by peer|unexpected EOF|Client\.Timeout exceeded"
    r"|(?i:temporary failure in name resolution)|\b(?:502 Bad Gateway|503 Service Unavailable|504 Gateway Time-?out)\b"
    # Two daemons' work at once (moby libnetwork; containerd's import).
    r"|failed to (?:set|allocate) .*iptables.*: resource temporarily unavailable"
)


_BEYOND = re.compile(r"failed to (?:init|join) node with kubeadm")
"""Nothing that passes by itself: kubeadm has tried for minutes, and its whole log, in which anything may be read,
follows (kind pkg/cluster/internal/create/actions/kubeadminit/init.go@v0.33.0)."""


class CommandFailed(ClusterError):
    """A command ended with another code than 0; `text` is what it said."""

    def __init__(self, what: str, argv: Sequence[str], code: int, text: str) -> None:
        self.text = text
        tail = "\n".join(text.splitlines()[-_LINES:])
        super().__init__(f"{what} failed: `{' '.join(argv)}` ended with code {code}:\n{tail}")


class CommandSlow(ClusterError):
    """A command was not done in time, and was ended."""


def passes_by_itself(error: BaseException) -> bool:
    """Whether the same command may work in a moment: by what it said, never by hope."""
    if not isinstance(error, CommandFailed) or _BEYOND.search(error.text):
        return False
    return _TRANSIENT.search(error.text) is not None


class Commands:
    """Runs commands in one environment. For any number of threads."""

    def __init__(self, environment: Mapping[str, str], look: Callable[[], None] = lambda: None) -> None:
        """`look` is called twice a second while a command runs, and raises if it should not go on."""
        self.environment = environment
        self._look = look
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Ends every command that runs, and lets none begin."""
        self._given_up.set()

    def run(self, what: str, argv: Sequence[str | Path], seconds: float) -> str:
        """Standard output of a command.

        Raises:
            CommandFailed: it ended with another code than 0.
            CommandSlow: it took longer than `seconds`.
            ClusterError: it can't be started.
        """
        return self.output(what, argv, seconds).out

    def output(self, what: str, argv: Sequence[str | Path], seconds: float) -> Output:
        """Both streams of a command; raises as `run`."""
        self.go_on()
        words = [str(word) for word in argv]
        try:
            output = run(words, cwd=Path("/"), environment=self.environment, timeout=seconds, tick=self.go_on)
        except FileNotFoundError as error:
            raise ClusterError(f"{what}: there is no {words[0]} here; install it, or put it in the PATH") from error
        except OSError as error:
            raise ClusterError(f"{what}: {words[0]} can't be run: {error}") from error
        except subprocess.TimeoutExpired as error:
            raise CommandSlow(f"{what}: `{' '.join(words)}` was not done in {seconds:g} s, and was ended") from error
        if output.code:
            raise CommandFailed(what, words, output.code, output.text)
        return output

    def persistently(self, what: str, argv: Sequence[str | Path], seconds: float, undo: Callable[[], object]) -> str:
        """As `run`, up to three times if the error is one that passes; `undo` removes what a failure has left."""

        def clear(_: RetryCallState) -> None:
            undo()

        def pause(seconds: float) -> None:
            self._given_up.wait(seconds)

        trying = Retrying(
            retry=retry_if_exception(passes_by_itself),
            stop=stop_after_attempt(TRIES),
            wait=wait_exponential(max=8),
            before_sleep=clear,
            sleep=pause,
            reraise=True,
        )
        return trying(self.run, what, argv, seconds)

    def go_on(self) -> None:
        """Returns if there is still somebody who wants it.

        Raises:
            ClusterError: there isn't; or whatever `look` raises.
        """
        if self._given_up.is_set():
            raise ClusterError("the cluster is not wanted any more")
        self._look()


def environment(kubeconfig: Path, network: str) -> dict[str, str]:
    """The user's own, but for the kubeconfig, which no command of ours may find, and kind's network, one a cluster."""
    return {**os.environ, "KUBECONFIG": str(kubeconfig), NETWORK: network}
