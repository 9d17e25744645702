from __future__ import annotations

import pytest

from raykueue.errors import UsageError
from raykueue.matrix.github import MOST, jobs_by_pair, jobs_by_shard
from raykueue.matrix.selection import Shard, choose, pair_id, short
from raykueue.model.versions import Pair
from raykueue.toolchain.lock import load_versions

VERSIONS = load_versions()


@pytest.mark.parametrize("of", [1, 2, 3, 28, 30])
def test_shards_have_every_pair_once(of: int) -> None:
    parts = [Shard(number, of).part(VERSIONS.pairs) for number in range(1, of + 1)]
    assert sorted(map(pair_id, sum(parts, ()))) == sorted(map(pair_id, VERSIONS.pairs))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "a/b", "-1/2", "1/2/3"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected i/n"):
        Shard.parse(text)


def test_classes_take_in_what_is_better() -> None:
    words = ("pinned", "supported", "all", "exploratory")
    pinned, supported, every, exploratory = (set(choose(word, VERSIONS)) for word in words)
    assert {pair.klass for pair in pinned} == {"pinned"}
    assert exploratory == every - supported
    assert pinned < supported < every == set(VERSIONS.pairs)
    assert len(every) == 28


def test_pairs_can_be_named_in_any_order() -> None:
    chosen = choose("0.10.1+1.3.2, v0.19.2+v1.6.2", VERSIONS)
    assert [short(pair) for pair in chosen] == ["0.19.2+1.6.2", "0.10.1+1.3.2"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "expected default, pinned, supported, all, exploratory"),
        ("0.19.2", "KUEUE"),
        ("+1.6.2", "KUEUE"),
        ("0.1+1.6.2", "kueue 0.1 is not"),
    ],
)
def test_pairs_that_are_not_there_are_refused(said: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        choose(said, VERSIONS)


def test_github_gets_a_job_for_each_pair_the_pinned_ones_first() -> None:
    jobs = jobs_by_pair(VERSIONS.pairs)["include"]
    assert len(jobs) == 28
    assert len({job["name"] for job in jobs}) == 28
    order = [job["class"] for job in jobs]
    assert order == sorted(order, key=("pinned", "supported", "exploratory").index)
    assert jobs[0] == {
        "name": "0.19.2+1.6.2",
        "kubernetes": "1.34.4",
        "kueue": "0.19.2",
        "kuberay": "1.6.2",
        "pair": "0.19.2+1.6.2",
        "class": "pinned",
    }


def test_the_default_pair_can_be_chosen_by_that_word() -> None:
    assert choose("default", VERSIONS) == (VERSIONS.default,)


def test_github_gets_a_job_for_each_shard_and_none_is_empty() -> None:
    jobs = jobs_by_shard(VERSIONS.pairs[:3], 7)["include"]
    assert [job["shard"] for job in jobs] == ["1/3", "2/3", "3/3"]
    assert [job["pairs"] for job in jobs] == [short(pair) for pair in VERSIONS.pairs[:3]]


def test_what_github_would_refuse_is_refused_here() -> None:
    many = [Pair("1.34.4", "0.19.2", f"1.6.{number}") for number in range(MOST + 1)]
    with pytest.raises(UsageError, match="257 jobs, and GitHub Actions takes 256"):
        jobs_by_pair(many)
    assert len(jobs_by_pair(many[:MOST])["include"]) == MOST
    assert len(jobs_by_shard(many, 10)["include"]) == 10
    with pytest.raises(UsageError, match="no pair is chosen"):
        jobs_by_pair([])
    with pytest.raises(UsageError, match="at least 1"):
        jobs_by_shard(many, 0)
