"""Disjoint sets and the names of clusters."""

from news_platform.near_duplicates.batch import DisjointSets
from news_platform.near_duplicates.sketch import cluster_id


def test_a_cluster_is_named_by_its_first_document_and_text() -> None:
    assert cluster_id("https://a.example/", "00") == cluster_id("https://a.example/", "00")
    assert cluster_id("https://a.example/", "00") != cluster_id("https://a.example/", "01")
    assert len(cluster_id("half a pair \ud800", "00")) == 16


def test_numbers_stand_alone_until_joined() -> None:
    groups = DisjointSets(3)
    assert [groups.first(number) for number in range(3)] == [0, 1, 2]


def test_joined_numbers_share_the_smallest_through_any_chain() -> None:
    groups = DisjointSets(6)
    for pair in ((4, 5), (2, 4), (3, 2)):
        groups.join(*pair)
    assert [groups.first(number) for number in range(6)] == [0, 1, 2, 2, 2, 2]


def test_a_long_chain_is_one_group() -> None:
    groups = DisjointSets(10_000)
    for number in range(9_999, 0, -1):
        groups.join(number, number - 1)
    assert {groups.first(number) for number in range(10_000)} == {0}
