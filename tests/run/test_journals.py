from __future__ import annotations

from pathlib import Path

import pytest

from raykueue.model.events import Barrier, Event, Gap, Header, Listed, Marker, Record
from raykueue.model.journal import JournalError
from raykueue.run.journals import load, save

RECORDS: list[Record] = [
    Header(1, pair={"kueue": "0.19.2"}),
    Event("Pod", "ADDED", 5, 10, {"metadata": {"name": "ü"}}, listed=True),
    Listed("Pod", 6, 11),
    Gap("Pod", 6, 9, 12, "410"),
    Marker("kueue-down", 13, {"why": "test"}),
    Barrier(9, 14),
]


@pytest.mark.parametrize("name", ["j.jsonl", "j.jsonl.gz", "new/folder/j.jsonl.gz"])
def test_what_is_saved_is_loaded(tmp_path: Path, name: str) -> None:
    save(RECORDS, tmp_path / name)
    assert load(tmp_path / name) == RECORDS
    assert [path.name for path in (tmp_path / name).parent.iterdir()] == [Path(name).name]


def test_only_gz_is_compressed(tmp_path: Path) -> None:
    save(RECORDS, tmp_path / "j.jsonl")
    save(RECORDS, tmp_path / "j.jsonl.gz")
    assert (tmp_path / "j.jsonl").read_bytes().startswith(b'{"record":"header"')
    assert (tmp_path / "j.jsonl.gz").read_bytes().startswith(b"\x1f\x8b")


def test_a_last_line_that_was_cut_short_is_left_out_but_a_bad_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    save(RECORDS, path)
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole[:-5], encoding="utf-8")
    assert load(path) == RECORDS[:-1]
    path.write_text("nonsense\n" + whole, encoding="utf-8")
    with pytest.raises(JournalError, match="line 1"):
        load(path)
