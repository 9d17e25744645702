"""`python -m raykueue.ray.simulated --folder DIR`: reads DIR/ray.json, says `ready`, and runs until it is ended."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from raykueue.errors import InfraError, UsageError
from raykueue.kube.access import load_access
from raykueue.ray.simulated.component import READY_LINE, read_config
from raykueue.ray.simulated.process import Process


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 when it was asked to end."""
    parser = argparse.ArgumentParser(prog="raykueue.ray.simulated", description="Plays Ray for an embedded cluster.")
    parser.add_argument("--folder", type=Path, required=True, help="holds ray.json")
    folder: Path = parser.parse_args(arguments).folder
    try:
        config = read_config(folder)
        access = load_access(Path(config.kubeconfig), config.context)
        asyncio.run(_run(Process(access, config.port, Path(config.control))))
    except (InfraError, UsageError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201 - a process's log
        return error.exit_code if isinstance(error, (InfraError, UsageError)) else InfraError.exit_code
    return 0


async def _run(process: Process) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def wait_for_end_of_input() -> None:
        while os.read(0, 4096):
            pass
        with suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(stop.set)

    # A thread, since stdin may be anything: a pipe, a terminal, a file.
    threading.Thread(target=wait_for_end_of_input, daemon=True).start()
    await process.run(lambda: print(READY_LINE, flush=True), stop)  # noqa: T201 - read by the cluster


if __name__ == "__main__":
    sys.exit(main())
