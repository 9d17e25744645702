"""Every gate is asked for by something, or is kept for a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from raykueue.model.gates import BY_NAME

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("suites", "raykueue", "fixtures")
"""Markers, known issues and allowances, laws of deletion, code. Tests of the gates themselves are no use."""
WORD = re.compile(r"""["']([a-z0-9]+(?:-[a-z0-9]+)*)["']""")

_SIGN = "its sign is compared with the cluster before anything runs, which shows what release that really is: "
KEPT: Mapping[str, str] = {
    # What is charged: the numbers that a queue is sized by.
    "autoscaler-sidecar-charged": "a container beside those of the job, which is paid for or not",
    "negative-requests-refused": _SIGN + "a request that would be credit",
    "queue-labels-on-pods": _SIGN + "which quota a pod is on, said on the pod",
    # The API, and what is refused.
    "cohort-v1beta1": _SIGN + "in which version a cohort is read",
    "nine-worker-groups": _SIGN + "how large a job may be",
    "seventeen-worker-groups": _SIGN + "how large a job may be",
    "rayservice-managed": _SIGN + "another kind that can be queued",
    "elastic-jobs-default": _SIGN + "whether a job's size may change while it runs",
    "equal-jobs-passed-over": _SIGN + "whether every pending job is told why",
    # What KubeRay can do.
    "pre-running-deadline": _SIGN + "another end of a job that has quota",
    "ray-job-info": _SIGN + "when the Ray job itself began and ended",
    "ray-auth": _SIGN + "whether the dashboard may ask who we are",
    "multi-host-index": _SIGN + "labels of pods in multi-host groups",
}
"""Gates that nothing asks for (yet), each with what it is kept for."""


def used() -> set[str]:
    """Names of gates that stand as such in a file outside their own package."""
    gates = ROOT / "raykueue" / "model" / "gates"
    files = [path for place in PLACES for path in (ROOT / place).rglob("*") if path.suffix in (".py", ".toml")]
    return {
        word
        for path in files
        if gates not in path.parents
        for word in WORD.findall(path.read_text("utf-8"))
        if word in BY_NAME
    }


def test_every_gate_is_asked_for_or_is_kept_for_a_reason() -> None:
    assert sorted(BY_NAME.keys() - used() - KEPT.keys()) == []


def test_what_is_asked_for_needs_no_reason() -> None:
    assert sorted(KEPT.keys() & used()) == []


def test_what_is_kept_is_there_and_is_kept_for_its_sign_only_if_it_has_one() -> None:
    assert sorted(KEPT.keys() - BY_NAME.keys()) == []
    assert [name for name, why in KEPT.items() if why.startswith(_SIGN) is (BY_NAME[name].sign is None)] == []
