from __future__ import annotations

from raykueue.controllers.settings import DEFAULT, Settings, gates_flag, merged


def test_mappings_are_merged_and_everything_else_is_replaced() -> None:
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 1, "e": {"f": 1}}
    assert merged(base, {"a": {"c": [3]}, "d": {"x": 1}, "e": 2}) == {"a": {"b": 1, "c": [3]}, "d": {"x": 1}, "e": 2}


def test_merging_changes_neither_side() -> None:
    base, extra = {"a": {"b": 1}}, {"a": {"c": 2}}
    merged(base, extra)
    assert (base, extra) == ({"a": {"b": 1}}, {"a": {"c": 2}})


def test_gates_are_one_flag_in_the_spelling_of_go() -> None:
    assert gates_flag({"B": False, "A": True}) == ["--feature-gates=A=true,B=false"]
    assert gates_flag({}) == []


def test_equal_settings_have_one_key_whatever_the_order() -> None:
    assert Settings(kueue_gates={"A": True, "B": False}).key() == Settings(kueue_gates={"B": False, "A": True}).key()
    assert Settings(kueue_gates={"A": True}).key() != DEFAULT.key()
    assert Settings(**Settings(kuberay_env={"A": "1"}).as_dict()) == Settings(kuberay_env={"A": "1"})
