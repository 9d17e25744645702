from __future__ import annotations

import pytest

from raykueue.model.applicability import doubts, excuses

PAIR = {"kueue": "0.19.2", "kuberay": "1.5.1", "kubernetes": "1.34.4"}


@pytest.mark.parametrize(
    ("absence", "backends"),
    [
        ("needs:deletion-strategy-default", {"embedded", "kind", "existing"}),
        ("lacks:submitter-pod-set", {"embedded", "kind", "existing"}),
        ("needs:submitter-pod-set", set()),
        ("lacks:deletion-strategy-default", set()),
        ("needs:nosuch", set()),
        ("lacks:nosuch", set()),
        ("tier:node", {"embedded"}),
        ("tier:control-plane", {"kind", "existing"}),
        ("faults:nodes", {"embedded", "existing"}),
        ("exclusive", {"existing"}),
        ("because", set()),
    ],
)
def test_an_absence_holds_where_it_is_so_and_nowhere_else(absence: str, backends: set[str]) -> None:
    assert {one for one in ("embedded", "kind", "existing") if not doubts([absence], PAIR, one)} == backends


def test_a_gate_of_a_product_whose_version_nobody_says_is_doubted() -> None:
    (why,) = doubts(["needs:submitter-pod-set"], {"kuberay": "1.5.1"}, "embedded")
    assert "doesn't say which kueue" in why


def test_what_is_required_on_a_kind_of_cluster_is_not_excused_by_it() -> None:
    every = ("needs:a", "lacks:a", "exclusive", "tier:node", "faults:nodes")
    assert [one for one in every if excuses(one)] == ["needs:a", "lacks:a"]
