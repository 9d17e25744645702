"""Importing this goes on in .venv, where the project is installed: the script starts again with the Python there.

It is made first if it is missing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ci.support.paths import BIN, ROOT

if Path(sys.prefix).resolve() != BIN.parent.resolve():
    code = subprocess.run([sys.executable, str(ROOT / "ci" / "setup")], check=False).returncode
    if code != 0:
        raise SystemExit(code)
    python = str(BIN / "python")
    os.execv(python, [python, *sys.argv])  # noqa: S606 - a list of arguments and no shell, as it should be
