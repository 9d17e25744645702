"""`python -m raykueue.run.recorder --folder RUN`; see `raykueue.run.recorder.launch`, which starts it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from raykueue.run.recorder.audited import LedgerAuditor
from raykueue.run.recorder.process import run


def main() -> int:
    """Records until its input ends. Exit code 0: clean; 3: it could not start."""
    parser = argparse.ArgumentParser(prog="raykueue-recorder", description="Watches a cluster and writes a journal.")
    parser.add_argument("--folder", type=Path, required=True, help="the run's folder, with recorder.json in it")
    folder: Path = parser.parse_args().folder
    return run(folder, lambda config: LedgerAuditor(config.settings, config.pair))


if __name__ == "__main__":
    sys.exit(main())
