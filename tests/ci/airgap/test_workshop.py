from __future__ import annotations

from pathlib import Path

import pytest

from ci.airgap.workshop import Part, Workshop, artifact, in_order
from raykueue.errors import ToolchainError


def part(name: str, content: str = "x", *needs: Part, made: list[str] | None = None) -> Part:
    def fill(shop: Workshop, folder: Path) -> None:
        for need in needs:
            shop.path(need)
        (folder / "file").write_text(content)
        if made is not None:
            made.append(name)

    return Part(artifact(name, {"content": content}, "file"), f"making {name}", 0.1, fill, needs)


def test_needs_come_first_and_each_part_once() -> None:
    base = part("base")
    one, two = part("one", "x", base), part("two", "x", base)
    assert [each.artifact.name for each in in_order([part("top", "x", one, two), base])] == [
        "base",
        "one",
        "two",
        "top",
    ]


def test_what_is_missing_is_made_and_what_is_there_is_not_made_again(shop: Workshop) -> None:
    made: list[str] = []
    base = part("base", made=made)
    top = part("top", "x", base, made=made)
    shop.make([top])
    shop.make([top, base])
    assert made == ["base", "top"]
    assert shop.path(top).read_text() == "x"
    assert set(shop.seconds) == {"base", "top"}


def test_only_what_has_changed_is_made_again(shop: Workshop) -> None:
    made: list[str] = []
    shop.make([part("one", "x", made=made), part("two", "x", made=made)])
    shop.make([part("one", "x", made=made), part("two", "y", made=made)])
    assert made == ["one", "two", "two"]


def test_what_was_not_made_is_named_with_the_way_to_make_it(shop: Workshop) -> None:
    with pytest.raises(ToolchainError, match=r"one is not in the cache .* run ci/airgap/build"):
        shop.path(part("one"))


def test_a_part_that_fails_leaves_nothing(shop: Workshop) -> None:
    def fill(shop: Workshop, folder: Path) -> None:
        (folder / "half").touch()
        shop.call(["sh", "-c", "for n in $(seq 40); do echo line $n; done; exit 7"], 30)

    broken = Part(artifact("broken", {}), "breaking", 0.1, fill)
    with pytest.raises(ToolchainError, match="ended with code 7") as caught:
        shop.make([broken])
    assert "line 40" in str(caught.value)
    assert "line 20\n" not in str(caught.value)
    assert shop.store.find(broken.artifact) is None
    assert list((shop.store.root / "airgap").iterdir()) == []


def test_a_command_that_takes_too_long_is_ended(shop: Workshop) -> None:
    shop.store.root.mkdir(parents=True)
    with pytest.raises(ToolchainError, match="no end after 0 s"):
        shop.call(["sleep", "600"], 0.2)


def test_a_command_that_does_not_exist_is_said(shop: Workshop) -> None:
    shop.store.root.mkdir(parents=True)
    with pytest.raises(ToolchainError, match="can't be started"):
        shop.call(["no-such-command"], 5)
