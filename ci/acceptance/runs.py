"""Checks: the two commands of the README, and the walkthrough in every way in which it can be run."""

from __future__ import annotations

import json
import re

from ci.acceptance.ground import Ground, Outcome, expect, until

WALKTHROUGH = "suites/walkthrough"
ONE_TEST = f"{WALKTHROUGH}/test_deploy.py"
RUNS_IN_A_ROW = 5


def make_test_is_green(ground: Ground) -> str:
    """By way of `.ci/run`, as continuous integration runs it; its last line counts."""
    outcome = ground.run(".ci/run", patience=1800)
    expect(re.fullmatch(r"\d+ passed, 0 failed", outcome.last_line), f"its last line is {outcome.last_line!r}")
    return outcome.last_line


def make_conformance_is_green(ground: Ground) -> str:
    """And leaves a report that `raykueue report` shows with the same verdict."""
    outcome = ground.run("make", "conformance", says="GREEN")
    ground.run("raykueue", "report", says="GREEN")
    return verdict(outcome)


def the_walkthrough_is_green_on_four_processes(ground: Ground) -> str:
    """`-n 4`."""
    return verdict(ground.run("pytest", WALKTHROUGH, "-n", "4", says="GREEN"))


def the_walkthrough_is_green_without_a_number_of_processes(ground: Ground) -> str:
    """Side by side is the default."""
    return verdict(ground.run("pytest", WALKTHROUGH, says="GREEN"))


def the_walkthrough_is_green_in_one_process(ground: Ground) -> str:
    """`-n 0` is the same code in one."""
    return verdict(ground.run("pytest", WALKTHROUGH, "-n", "0", says="GREEN"))


def a_cluster_left_up_serves_a_run_and_goes_down(ground: Ground) -> str:
    """`raykueue up && pytest suites/walkthrough --reuse-cluster && raykueue down`, and each of the two again."""
    up = ground.run("raykueue", "up", says="pytest --reuse-cluster")
    ground.run("raykueue", "up", says="was up already")
    ground.run("raykueue", "up", "--kueue", "0.16.2", code=4, says="`raykueue down default` first")
    ground.run("raykueue", "status", says="default")
    outcome = ground.run("pytest", WALKTHROUGH, "--reuse-cluster", says="GREEN")
    ground.run("raykueue", "logs", "kueue", "-n", "1")
    ground.run("raykueue", "down", says="cluster default is ended")
    ground.run("raykueue", "down", says="nothing to do")
    return f"up in {up.seconds:.1f} s; {verdict(outcome)}"


def five_walkthrough_runs_in_a_row_are_green(ground: Ground) -> str:
    """Each with a cluster of its own."""
    seconds = [ground.run("pytest", WALKTHROUGH, says="GREEN").seconds for _ in range(RUNS_IN_A_ROW)]
    return " ".join(f"{one:.0f}" for one in seconds) + " s"


def nothing_of_ours_listens_beyond_loopback(ground: Ground) -> str:
    """Read from the sockets of our processes while a run is at work; afterwards nobody listens there any more."""
    run = ground.start("pytest", WALKTHROUGH)
    run.until(ground.recording, "its recorder listens")
    ports: set[int] = set()
    for process in ground.processes():
        for one in process.net_connections("inet"):
            listens = one.status == "LISTEN" or (one.type.name == "SOCK_DGRAM" and not one.raddr)
            if listens:
                expect(one.laddr.ip in ("127.0.0.1", "::1"), f"{process.name()} listens on {one.laddr}")
                ports.add(one.laddr.port)
    expect(len(ports) >= 5, f"only ports {sorted(ports)} were found: is this the way to look?")
    ground.finish(run, 0, "GREEN")
    until(lambda: not ground.processes(), 5.0)
    return f"{len(ports)} ports, all on loopback"


def a_kubeconfig_that_is_not_ours_is_neither_used_nor_changed(ground: Ground) -> str:
    """Whatever KUBECONFIG says: embedded clusters have their own, and an existing one is never guessed."""
    server = {"server": "https://127.0.0.1:1"}
    parts = {
        "clusters": [{"name": "foreign", "cluster": server}],
        "users": [{"name": "foreign", "user": {"token": "secret"}}],
        "contexts": [{"name": "foreign", "context": {"cluster": "foreign", "user": "foreign"}}],
        "current-context": "foreign",
    }
    text = json.dumps({"apiVersion": "v1", "kind": "Config", **parts})
    foreign = ground.root.parent / "foreign-kubeconfig"
    foreign.write_text(text)
    foreign.chmod(0o400)
    env = {"KUBECONFIG": foreign}
    ground.run("pytest", ONE_TEST, says="GREEN", env=env)
    existing = ("--cluster", "existing")
    ground.run("pytest", ONE_TEST, *existing, code=4, says="no cluster is ever guessed", env=env)
    ground.run("pytest", ONE_TEST, *existing, "--context", "foreign", code=3, says=server["server"], env=env)
    expect(foreign.read_text() == text, "it was changed")
    return "green with a foreign KUBECONFIG, which only --context can name"


def verdict(outcome: Outcome) -> str:
    """The line of a run's summary that says how it ended."""
    lines = [line for line in outcome.text.splitlines() if "(exit code" in line]
    return f"{lines[-1] if lines else outcome.last_line}, {outcome.seconds:.0f} s"
