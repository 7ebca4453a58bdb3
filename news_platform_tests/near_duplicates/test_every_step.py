"""An exception at any step of one article leaves the clusters of the others as they are."""

from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pytest

from news_platform.near_duplicates.pipeline import build_day
from news_platform.storage.objects.store import open_store
from news_platform_tests.isolation.every_step import Run, StageResult, fail_at_steps
from news_platform_tests.isolation.injection import Victim
from news_platform_tests.near_duplicates.days import Corpus, day
from news_platform_tests.near_duplicates.stories import story, variant

# As long as "victim1": tables show the beginnings of long values only.
GOOD = ("friend1", "friend2", "friend3")
VICTIM = Victim("victim", GOOD)


def texts() -> dict[str, str]:
    """Return articles whose texts name them: two alike, one alone, and two victims, alike."""
    alike = {
        "friend1": story(1),
        "victim1": story(2),
        "friend2": variant(1, changed=4),
        "victim2": variant(2, changed=4),
        "friend3": story(3),
    }
    return {name: f"{text} {name}" for name, text in alike.items()}


def cluster_articles(folder: Path) -> Run:
    corpus = Corpus(open_store(mkdtemp(dir=folder)), folder)
    corpus.add(0, texts())

    def run() -> StageResult:
        report = build_day(corpus.store, day(0), days=corpus.window)
        assert report is not None
        rows = corpus.rows(0).to_dicts()
        neighbours = [row for row in rows if VICTIM.name not in row["uri"]]
        assert report.too_short == 0
        whole = report.articles - report.failed
        return StageResult(neighbours, {"compared": whole, "failed": report.failed})

    return run


def test_an_exception_at_any_step_of_an_article_leaves_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Clusters are joined by hashes: nothing of an article's text reaches them.
    fail_at_steps(
        partial(cluster_articles, tmp_path),
        VICTIM,
        caplog,
        most=4,
        only=lambda step: not step[1].startswith("_Clusters."),
    )
