"""Checks: however a run or a start ends, its verdict is true, and nothing is left running."""

from __future__ import annotations

import json
import signal
import time

import psutil

from ci.acceptance.ground import GONE_SECONDS, Ground, Running, expect, until
from ci.acceptance.runs import ONE_TEST, WALKTHROUGH

INTERRUPTED = 2
INFRA = 3
AT_ONCE = 20.0
"""Seconds until a run that can't go on must be over, with its report written."""


def after_kill_9_of_a_run_status_and_a_new_run_are_clean(ground: Ground) -> str:
    """The processes end by themselves; status removes and names what is left."""
    run = at_work(ground)
    run.send(signal.SIGKILL)
    ground.finish(run, -signal.SIGKILL)
    gone = until(lambda: not ground.processes(), GONE_SECONDS)
    expect(gone, f"{len(ground.processes())} processes are still there {GONE_SECONDS:.0f} s after its end")
    ground.run("raykueue", "status", says="cleaned up after")
    expect(not ground.left(), f"after `raykueue status` there is still {', '.join(ground.left())}")
    ground.run("pytest", ONE_TEST, says="GREEN")
    return "its processes ended by themselves"


def after_kill_9_of_a_run_a_new_run_is_clean_without_status(ground: Ground) -> str:
    """The next start cleans up by itself."""
    run = at_work(ground)
    run.send(signal.SIGKILL)
    ground.finish(run, -signal.SIGKILL)
    ground.run("pytest", ONE_TEST, says="GREEN")
    return ""


def after_kill_9_of_the_keeper_status_ends_what_it_kept(ground: Ground) -> str:
    """By pids and start times in its state file."""
    ground.run("raykueue", "up")
    (state,) = ground.state.glob("clusters/default/state.json")
    psutil.Process(json.loads(state.read_text())["keeper"]["pid"]).kill()
    before = len(ground.processes())
    ground.run("raykueue", "status", says="ended etcd")
    return f"{before} processes were left, and ended"


def ctrl_c_ends_a_run_with_its_summary(ground: Ground) -> str:
    """Pressed on a terminal: the whole group gets it."""
    run = at_work(ground)
    pressed = time.monotonic()
    run.press_ctrl_c()
    return interrupted(ground, run, pressed)


def sigterm_ends_a_run_with_its_summary(ground: Ground) -> str:
    """Sent to pytest alone, as a job's time limit does."""
    run = at_work(ground)
    pressed = time.monotonic()
    run.send(signal.SIGTERM)
    return interrupted(ground, run, pressed)


def ctrl_c_ends_a_run_whose_cluster_is_just_starting(ground: Ground) -> str:
    """With all processes that were started so far."""
    run = ground.start("pytest", WALKTHROUGH)
    run.until(lambda: bool(list(ground.state.glob("clusters/*/kube-apiserver.log"))), "its API server was started")
    pressed = time.monotonic()
    run.press_ctrl_c()
    return interrupted(ground, run, pressed)


def ctrl_c_and_sigterm_end_an_up_and_leave_nothing(ground: Ground) -> str:
    """At several moments of a start."""
    moments = ("keeper.log", "etcd.log", "kube-apiserver.log", "kueue.log")
    seconds = []
    for number in (signal.SIGINT, signal.SIGTERM):
        for name in moments:
            up = ground.start("raykueue", "up")
            up.until((ground.state / "clusters" / "default" / name).exists, name)
            pressed = time.monotonic()
            up.send(number)
            ground.finish(up, INTERRUPTED, "interrupted", AT_ONCE)
            seconds.append(time.monotonic() - pressed)
            expect(not ground.left(), f"{number.name} at {name}: there is still {', '.join(ground.left())}")
    return f"{len(seconds)} times, over within {max(seconds):.1f} s"


def a_component_that_dies_ends_the_run_at_once(ground: Ground) -> str:
    """With the last lines of its log, and a verdict that is neither green nor the product's fault."""
    run = at_work(ground)
    (kueue,) = [process for process in ground.processes() if process.name() == "kueue"]
    killed = time.monotonic()
    kueue.kill()
    outcome = ground.finish(run, INFRA, "kueue of cluster", AT_ONCE * 3)
    expect("ended by itself (signal 9)" in outcome.text, "it does not say how Kueue ended")
    expect("NOT JUDGED" in outcome.text, "its summary does not say that nothing was judged")
    return f"over {time.monotonic() - killed:.1f} s later"


def at_work(ground: Ground) -> Running:
    """A run whose tests have begun."""
    run = ground.start("pytest", WALKTHROUGH)
    run.until(ground.recording, "its recorder listens")
    time.sleep(2.0)  # some tests have jobs by then; nothing outside tells which
    return run


def interrupted(ground: Ground, run: Running, pressed: float) -> str:
    """Holds the end of an interrupted run against what was promised."""
    ground.finish(run, INTERRUPTED, "INTERRUPTED", AT_ONCE * 3)
    seconds = time.monotonic() - pressed
    report = json.loads((ground.root / "reports" / "latest" / "run.json").read_text())
    expect(report["interrupted"] and report["exit_code"] == INTERRUPTED, "run.json does not say so")
    expect(sum(report["counts"].values()) >= report["planned"], "some planned tests have no record")
    return f"over {seconds:.1f} s later"
