"""An exception at any step of one archived page leaves the other pages of its WARC as they are."""

from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pytest

from news_platform.ccnews.scan import scan_news
from news_platform.datasets.captures import CAPTURES
from news_platform.datasets.collected import Collected
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import read_table
from news_platform_tests.ccnews.archive import Record, article, http
from news_platform_tests.ccnews.crawl import DAY, collect_here, warc_path, write_crawl
from news_platform_tests.isolation.every_step import Run, StageResult, fail_at_steps
from news_platform_tests.isolation.injection import Victim

PATH = warc_path(DAY)
GOOD = ("news1.example", "news2.example", "news3.example")
VICTIM = Victim("victim.example", GOOD)
FEED = '<link rel="alternate" type="application/rss+xml" href="/rss" title="News">'


def page(host: str, *headers: str) -> Record:
    text = f"The mayor of the town opened the bridge of {host} today."
    return Record(http(article(text, head=FEED), *headers), uri=f"https://{host}/a")


def odd(host: str) -> Record:
    """Return a page whose record header is not ASCII, so that fastwarc parses it."""
    return Record(page(host).block, uri=f"https://{host}/é")


WARCS = {
    "strict": [page(GOOD[0]), page(VICTIM.name, "Last-Modified: x"), page(GOOD[1]), page(GOOD[2])],
    "odd": [page(GOOD[0]), odd(VICTIM.name), odd(GOOD[1]), page(GOOD[2])],
}


def rows_of(root: ObjectStore, marker: Collected) -> list[dict[str, object]]:
    """Return the rows of all three datasets, without those of the victim."""
    sides = [path for path in marker.paths() if "/captures/" in path]
    captures = [row for path in sides for row in read_table(root, path, CAPTURES).to_dicts()]
    found = [*scan_news(root).collect().to_dicts(), *captures]
    return sorted((row for row in found if VICTIM.name not in str(row)), key=repr)


def collect(folder: Path, source: ObjectStore) -> Run:
    place = Path(mkdtemp(dir=folder))
    root = open_store(str(place / "root"))

    def run() -> StageResult:
        marker = collect_here(PATH, source=source, root=root, scratch=place / "scratch")
        # A page that the extractor cannot read is in the index all the same.
        assert marker.rows <= (marker.captures or 0) <= len(GOOD) + 1
        found = StageResult(rows_of(root, marker), {"rows": marker.rows, **marker.dropped})
        assert len(found.neighbours) == 2 * len(GOOD)
        return found

    return run


# A seeded choice of steps, or all of them.
@pytest.mark.parametrize("most", [3, pytest.param(None, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", WARCS)
def test_an_exception_at_any_step_of_a_page_leaves_the_others(
    kind: str, most: int | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = write_crawl(tmp_path / "crawl", {PATH: WARCS[kind]})
    fail_at_steps(partial(collect, tmp_path, source), VICTIM, caplog, most=most)
