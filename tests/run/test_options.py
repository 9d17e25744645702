from __future__ import annotations

from typing import Any

import pytest

from raykueue.errors import UsageError
from raykueue.run.options import RunOptions


def test_what_is_asked_for_by_default_is_possible() -> None:
    assert RunOptions().checked() == RunOptions()


@pytest.mark.parametrize("profile", ["smoke", "core", "full"])
def test_every_profile_is_possible(profile: str) -> None:
    assert RunOptions(profile=profile).checked().profile == profile


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"cluster": "minikube"}, "--cluster minikube: there are embedded, kind, existing"),
        ({"keep": True}, "--keep-cluster goes with --cluster kind; `raykueue up` starts an embedded one that stays"),
        ({"context": "prod"}, "--context prod goes with --cluster existing only"),
        ({"profile": "quick"}, "--profile quick: there are smoke, core, full"),
    ],
)
def test_what_is_not_possible_is_told_with_what_is(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RunOptions(**asked).checked()


def test_no_existing_cluster_is_ever_guessed() -> None:
    with pytest.raises(UsageError, match="--cluster existing needs --context NAME: no cluster is ever guessed"):
        RunOptions(cluster="existing").checked()
    assert RunOptions(cluster="existing", context="mine").checked()
