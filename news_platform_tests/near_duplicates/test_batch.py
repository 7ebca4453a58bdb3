"""Clusters of a batch in any order, and their quality on real articles."""

import random
from pathlib import Path

import pytest

from benchmarks.near_duplicate_edits import MIXED
from benchmarks.near_duplicates import article_bodies, score_edit
from news_platform.near_duplicates.batch import Clustering, cluster_documents
from news_platform.near_duplicates.sketch import SketchOptions, TextDocument
from news_platform_tests.near_duplicates.stories import documents, story, variant

OPTIONS = SketchOptions()


def clustered(found: list[TextDocument]) -> Clustering:
    return cluster_documents(lambda: found, options=OPTIONS)


def groups(clustering: Clustering) -> list[list[str]]:
    by_cluster: dict[str, list[str]] = {}
    for member in clustering.members:
        by_cluster.setdefault(member.cluster_id, []).append(member.document_id)
    return sorted(by_cluster.values())


def test_alike_texts_form_a_cluster_and_others_stay_out() -> None:
    found = clustered(
        documents(a=story(1), b=variant(1, changed=5), c=story(2), d=story(3), e=story(3).upper())
    )
    assert groups(found) == [["a", "b"], ["d", "e"]]
    assert found.report.documents == 5
    assert found.report.distinct_texts == 4
    assert (found.report.clusters, found.report.members) == (2, 4)


def test_a_member_carries_the_jaccard_with_its_nearest() -> None:
    members = {
        member.document_id: member.jaccard
        for member in clustered(
            documents(a=story(1), b=variant(1, changed=5), c=story(1).title())
        ).members
    }
    assert members["a"] == members["c"] == 1.0
    assert members["b"] == pytest.approx((298 - 13) / (298 + 13), abs=0.01)


def test_below_the_threshold_nothing_is_alike() -> None:
    found = clustered(documents(a=story(1), b=variant(1, changed=20)))
    assert found.members == ()
    assert found.report.compared_pairs == 1
    assert found.report.alike_pairs == 0


def test_a_chain_of_alike_texts_is_one_cluster() -> None:
    step = {f"s{number}": shifted(number * 25) for number in range(4)}
    assert groups(clustered(documents(**step))) == [["s0", "s1", "s2", "s3"]]


def shifted(start: int) -> str:
    return " ".join(story(1, words=500).split()[start : start + 350])


def test_the_order_of_the_documents_does_not_matter() -> None:
    found = [
        *(TextDocument(f"page{seed}", story(seed)) for seed in range(20)),
        *(TextDocument(f"edit{seed}", variant(seed, changed=seed % 8)) for seed in range(20)),
    ]
    expected = clustered(found)
    for seed in range(3):
        random.Random(seed).shuffle(found)
        assert clustered(found) == expected
    assert expected.report.clusters == 20


def test_an_id_that_comes_again_counts_once() -> None:
    found = clustered(
        [TextDocument("a", story(1)), TextDocument("a", story(1)), TextDocument("b", story(2))]
    )
    assert found.members == ()
    assert found.report.documents == 2


def test_short_texts_are_counted_and_left_out() -> None:
    found = clustered(documents(a="Page not found", b="Page not found", c=story(1)))
    assert found.members == ()
    assert found.report.too_short == 2


def test_no_documents_give_no_clusters() -> None:
    assert clustered([]).members == ()


def test_a_template_of_hundreds_of_pages_is_one_cluster() -> None:
    pages = [TextDocument(f"p{n:03}", f"{story(1)} {story(1000 + n, words=6)}") for n in range(300)]
    found = clustered(pages)
    assert found.report.clusters == 1
    assert found.report.members == 300
    assert found.report.compared_pairs < 300 * 299 / 2


@pytest.fixture(scope="module")
def bodies(bench_data: Path) -> list[str]:
    return article_bodies(bench_data)[::4]


@pytest.mark.parametrize("name", MIXED)
def test_edits_it_was_not_tuned_on_are_found_in_real_articles(name: str, bodies: list[str]) -> None:
    score = score_edit(name, MIXED[name], bodies, seed=99)
    assert score.alike >= 100
    assert score.recall >= 0.95
    assert score.precision >= 0.99
