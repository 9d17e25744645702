"""Checks: what a user can get wrong, or find broken, is told in one line that says what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ci.acceptance.ground import Ground, expect
from ci.acceptance.runs import ONE_TEST, WALKTHROUGH
from raykueue.toolchain.store import cache_root

INFRA = 3
USAGE = 4
KNOWN = "known: 0.10.1"
"""How the list of known versions of Kueue begins."""
NOBODY = "http://127.0.0.1:1"
"""Where no registry listens."""

_LEFTOVERS = '''
from raykueue.kube.apply import create
from raykueue.run.manifests import load_one
from raykueue.run.states import Running


def test_a_job_still_runs_at_the_end(queue, submit):
    """A job that the test submitted and left running is deleted, and that is fine."""
    submit("rayjob.yaml").until(Running)


def test_a_job_was_made_behind_our_back(queue, trial):
    """A job that nobody submitted is named and deleted."""
    create(trial.session.api, trial.names.rename(load_one("rayjob.yaml", "RayJob")))
'''


def an_unknown_version_lists_the_known_ones(ground: Ground) -> str:
    """In every command that takes one."""
    ground.run("pytest", ONE_TEST, "--kueue", "9.9.9", code=USAGE, says=KNOWN)
    ground.run("raykueue", "up", "--kueue", "9.9.9", code=USAGE, says=KNOWN)
    ground.run("raykueue", "toolchain", "build", "--kueue", "9.9.9", code=USAGE, says=KNOWN)
    ground.run("ci/conformance", "--kueue", "9.9.9", code=USAGE, says=KNOWN)
    return ""


def an_option_that_does_not_exist_is_a_usage_error(ground: Ground) -> str:
    """Of pytest and of raykueue."""
    ground.run("pytest", ONE_TEST, "--nosuch", code=USAGE)
    ground.run("raykueue", "up", "--nosuch", code=USAGE)
    ground.run("pytest", ONE_TEST, "--profile", "nosuch", code=USAGE, says="smoke, core, full")
    ground.run("pytest", ONE_TEST, "--cluster", "nosuch", code=USAGE, says="embedded, kind, existing")
    return ""


def an_unreachable_registry_is_named_with_what_to_do(ground: Ground) -> str:
    """With empty caches, so that something must be fetched."""
    with tempfile.TemporaryDirectory(dir=ground.root.parent) as empty:
        caches = {"RAYKUEUE_CACHE": f"{empty}/cache", "GOMODCACHE": f"{empty}/modules", "GOPROXY": NOBODY}
        ground.run("raykueue", "toolchain", "build", code=INFRA, says="the registry can't be reached", env=caches)
        ground.run("raykueue", "up", code=INFRA, says="the registry can't be reached", env=caches)
        ground.run("pytest", ONE_TEST, code=INFRA, says="the registry can't be reached", env=caches)
    return ""


def a_full_disk_is_named_as_such(ground: Ground) -> str:
    """Where clusters are, and where binaries are."""
    with full_disk(ground) as (disk, limit, how):
        says = "no space left" if how == "tmpfs" else "file too large"
        state = {"RAYKUEUE_STATE": str(disk / "s")}
        outcome = ground.run(*limit, "raykueue", "up", code=INFRA, env=state)
        expect(says in outcome.text.lower(), f"it does not say {says!r}")
        cache = {"RAYKUEUE_CACHE": str(disk / "c")}
        ground.run(*limit, "raykueue", "toolchain", "build", "etcd", code=INFRA, env=cache)
    return f"by {how}"


def a_component_that_dies_at_start_is_shown_with_its_last_words(ground: Ground) -> str:
    """A scheduler that can't."""
    script = "#!/bin/sh\necho 'panic: this is no scheduler' >&2\nexit 7\n"
    with cache_with(ground, "kube-scheduler", lambda _: script) as cache:
        for command in (("raykueue", "up"), ("pytest", ONE_TEST)):
            outcome = ground.run(
                *command, code=INFRA, says="ended by itself (exit code 7)", env={"RAYKUEUE_CACHE": cache}
            )
            expect("panic: this is no scheduler" in outcome.text, "its last words are not shown")
    return ""


def a_port_that_is_taken_once_costs_one_more_try(ground: Ground) -> str:
    """Somebody else bound it after we had found it free."""

    def script(real: Path) -> str:
        marker = ground.root.parent / "was-taken"
        marker.unlink(missing_ok=True)
        words = "listen tcp 127.0.0.1:10250: bind: address already in use"
        return f"#!/bin/sh\n[ -e {marker} ] && exec {real} \"$@\"\ntouch {marker}\necho '{words}' >&2\nexit 1\n"

    with cache_with(ground, "kwok", script) as cache:
        ground.run("raykueue", "up", says="a port was taken by somebody else", env={"RAYKUEUE_CACHE": cache})
        ground.run("raykueue", "down")
    return ""


def a_port_that_is_always_taken_is_told_after_three_tries(ground: Ground) -> str:
    """With the component's own line."""
    script = "#!/bin/sh\necho 'listen tcp 127.0.0.1:10250: bind: address already in use' >&2\nexit 1\n"
    with cache_with(ground, "kwok", lambda _: script) as cache:
        outcome = ground.run("raykueue", "up", code=INFRA, says="(2 of 2)", env={"RAYKUEUE_CACHE": cache})
    expect(outcome.text.count("bind: address already in use") >= 1, "the component's own line is not shown")
    return ""


def a_cluster_that_is_not_there_is_named_with_how_to_start_it(ground: Ground) -> str:
    """And one that runs other versions with how to go on."""
    ground.run("pytest", ONE_TEST, "--reuse-cluster=nosuch", code=INFRA, says="`raykueue up nosuch` starts one")
    with ground.up():
        options = ("--reuse-cluster", "--kueue", "0.16.2")
        ground.run("pytest", ONE_TEST, *options, code=USAGE, says="`raykueue down default`")
    return ""


def a_second_run_on_a_cluster_is_told_who_has_it(ground: Ground) -> str:
    """The first one is not disturbed."""
    with ground.up():
        first = ground.start("pytest", WALKTHROUGH, "--reuse-cluster")
        first.until(lambda: re.search(r"^\[ *1/", first.text, re.MULTILINE) is not None, "its first test has ended")
        who = f"pid {first.pid} (pytest, run"
        first.send(signal.SIGSTOP)  # so that it is not over before it has been asked about; its tests go on
        try:
            ground.run("raykueue", "status", says=who)
            ground.run("raykueue", "down", code=INFRA, says=f"in use by {who}")
            ground.run("pytest", ONE_TEST, "--reuse-cluster", code=INFRA, says=f"in use by {who}")
        finally:
            first.send(signal.SIGCONT)
        ground.finish(first, 0, "GREEN")
    return ""


def a_test_that_leaves_a_job_behind_is_told_so_and_the_job_is_gone(ground: Ground) -> str:
    """Jobs that it submitted are ended for it; others are named."""
    folder = ground.root / "suites" / "acceptance"
    folder.mkdir()
    try:
        (folder / "test_leftovers.py").write_text(_LEFTOVERS)
        outcome = ground.run("pytest", str(folder), code=INFRA, says="behind, which `submit` does not know")
    finally:
        shutil.rmtree(folder)
    expect("1 pass" in outcome.text, "the job that was submitted and left running is held against its test")
    return ""


@contextmanager
def full_disk(ground: Ground) -> Iterator[tuple[Path, tuple[str, ...], str]]:
    """A folder in which nothing large can be written, the words before a command to make it so, and how it is done."""
    folder = ground.root.parent / "d"
    folder.mkdir(exist_ok=True)
    mounted = os.geteuid() == 0 and _quiet("mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder))
    try:
        if mounted:
            yield folder, (), "tmpfs"
        else:
            yield folder, ("bash", "-c", 'ulimit -f 3000; exec "$@"', "limited"), "a limit on the size of files"
    finally:
        if mounted:
            _quiet("umount", "--lazy", str(folder))
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def cache_with(ground: Ground, program: str, script: Callable[[Path], str]) -> Iterator[Path]:
    """The user's cache, but for one program that is a script instead; what starts save goes nowhere else."""
    real = cache_root()
    with tempfile.TemporaryDirectory(dir=ground.root.parent) as temporary:
        cache = Path(temporary)
        for part in real.iterdir():
            if part.is_dir() and part.name not in ("bin", "locks", "state"):
                (cache / part.name).symlink_to(part)
        (cache / "bin").mkdir()
        for artifact in (real / "bin").iterdir():
            if artifact.name.rsplit("-", 2)[0] != program:
                (cache / "bin" / artifact.name).symlink_to(artifact)
                continue
            (cache / "bin" / artifact.name).mkdir()
            replaced = cache / "bin" / artifact.name / program
            replaced.write_text(script(artifact / program))
            replaced.chmod(0o755)
            about = json.loads((artifact / "artifact.json").read_text())
            about["size"] = replaced.stat().st_size
            (replaced.parent / "artifact.json").write_text(json.dumps(about))
        yield cache


def _quiet(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
