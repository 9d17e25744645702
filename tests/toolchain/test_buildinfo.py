from __future__ import annotations

from pathlib import Path

import pytest

from raykueue.errors import ToolchainError
from raykueue.toolchain.buildinfo import Module, modules_of

MODULES = (
    "path\tsigs.k8s.io/kueue/cmd/kueue\nmod\twrapper\t(devel)\t\n"
    "dep\tsigs.k8s.io/kueue\tv0.19.2\th1:mPN=\n"
    "dep\texample.org/replaced\tv1.0.0\n=>\texample.org/fork\tv1.0.1\th1:fork=\n"
    "dep\texample.org/local\tv1.2.3\n"
    "build\t-trimpath=true\n"
)


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def program(path: Path, modules: str = MODULES, flags: int = 2, before: bytes = b"\x7fELF" + b"\0" * 60) -> Path:
    header = (b"\xff Go buildinf:" + bytes([8, flags])).ljust(32, b"\0")
    said = b"s" * 16 + modules.encode() + b"e" * 16
    path.write_bytes(before + header + varint(8) + b"go1.26.6" + varint(len(said)) + said + b"rest")
    return path


def test_a_program_says_which_modules_went_into_it(tmp_path: Path) -> None:
    assert modules_of(program(tmp_path / "kueue")) == {
        "wrapper": Module("(devel)", ""),
        "sigs.k8s.io/kueue": Module("v0.19.2", "h1:mPN="),
        "example.org/local": Module("v1.2.3", ""),
    }


def test_long_lists_have_a_length_of_several_bytes(tmp_path: Path) -> None:
    many = MODULES + "".join(f"dep\texample.org/m{number}\tv1.0.{number}\th1:x=\n" for number in range(2000))
    assert modules_of(program(tmp_path / "kueue", many))["example.org/m1999"] == Module("v1.0.1999", "h1:x=")


def test_the_same_bytes_elsewhere_are_not_taken_for_it(tmp_path: Path) -> None:
    misplaced = b"\x7fELF" + b"\xff Go buildinf:" + b"\0" * 46
    assert len(misplaced) % 16 == 0
    assert "sigs.k8s.io/kueue" in modules_of(program(tmp_path / "kueue", before=misplaced))


def test_what_does_not_say_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "empty").touch()
    old = program(tmp_path / "old", flags=0)
    bare = program(tmp_path / "bare", modules="")
    for path, told in (
        (tmp_path / "script", "no Go program"),
        (old, "no Go program"),
        (bare, "no Go program"),
        (tmp_path / "empty", "can't be read as a program"),
        (tmp_path / "none", "can't be read as a program"),
    ):
        with pytest.raises(ToolchainError, match=told):
            modules_of(path)


def test_one_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    whole = program(tmp_path / "kueue").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: whole.index(b"go1.26.6") + 8])
    with pytest.raises(ToolchainError, match="damaged"):
        modules_of(tmp_path / "cut")
