"""Build every file of the sample world from a seed, with counts of what was built."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from news_platform.sample.crawl import LISTING, SampleWarc, crawl_warcs, late_warc, listing
from news_platform.sample.feeds import render_opml
from news_platform.sample.institutions import snapshot_files
from news_platform.sample.newsroom import SampleArticle, publish
from news_platform.sample.outlets import OUTLETS
from news_platform.sample.research import earlier_survey, research_files
from news_platform.sample.server import site_files
from news_platform.sample.sites import Site, build_sites

# Feeds that an editor would start with; discovery finds the others in crawled pages.
_LISTED = ("meridian", "harbourhill", "northmoor", "fenwick", "tidewater", "kupfertal")


@dataclass(frozen=True, slots=True)
class WorldSummary:
    """The contents of a world: `pages` counts WARC responses, `late` are days with a late WARC."""

    seed: int
    outlets: int
    languages: int
    charsets: int
    articles: int
    copies: int
    updates: int
    warcs: int
    pages: int
    hosts: int
    feeds: int
    research_files: int
    snapshots: int
    files: int
    size_bytes: int
    late: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class World:
    """All files of a world by path, and their summary."""

    files: Mapping[str, bytes]
    summary: WorldSummary


def build_world(seed: int, *, late: Sequence[date] = ()) -> World:
    """Build the world of a seed; the days in `late` have an additional WARC."""
    articles = articles_of(seed)
    sites = build_sites(articles)
    warcs = [*crawl_warcs(articles, sites, seed), *(late_warc(articles, day, seed) for day in late)]
    research, snapshots = research_files(), snapshot_files()
    files = {
        f"crawl/{LISTING}": listing(warc.path for warc in warcs),
        **{f"crawl/{warc.path}": warc.body for warc in warcs},
        **_under("research", research),
        **_under("surveyed", earlier_survey()),
        **_under("snapshots", snapshots),
        **_under("sites", site_files(sites)),
        "feeds.opml": render_opml(_opml_feeds()),
    }
    summary = WorldSummary(
        seed=seed,
        **_article_counts(articles),
        **_crawl_counts(warcs, sites),
        research_files=len(research),
        snapshots=len(snapshots),
        files=len(files),
        size_bytes=sum(map(len, files.values())),
        late=tuple(day.isoformat() for day in late),
    )
    return World(files=dict(sorted(files.items())), summary=summary)


@lru_cache(maxsize=2)
def articles_of(seed: int) -> tuple[SampleArticle, ...]:
    """Return the articles of a seed, which are written once per process."""
    return publish(seed)


def _article_counts(articles: Sequence[SampleArticle]) -> dict[str, int]:
    return {
        "outlets": len(OUTLETS),
        "languages": len({outlet.language for outlet in OUTLETS}),
        "charsets": len({outlet.charset for outlet in OUTLETS}),
        "articles": len(articles),
        "copies": sum(article.kind in ("copy", "twin") for article in articles),
        "updates": sum(article.updated_at is not None for article in articles),
    }


def _crawl_counts(warcs: Sequence[SampleWarc], sites: Mapping[str, Site]) -> dict[str, int]:
    return {
        "warcs": len(warcs),
        "pages": sum(warc.pages for warc in warcs),
        "hosts": len(sites),
        "feeds": len(OUTLETS),
    }


def _opml_feeds() -> list[tuple[str, str]]:
    """Return the listed feeds, one with an old address, and three that cause errors."""
    listed = [
        (outlet.name, outlet.origin + outlet.feed.path)
        for outlet in OUTLETS
        if outlet.key in _LISTED
    ]
    return [
        *listed,
        ("The Calder Post", "https://www.calderpost.example/feed"),
        ("The Calder Post, archive", "https://www.calderpost.example/feeds/archive.xml"),
        ("Harbour & Hill, old feed", "https://www.harbourhill.co.example/old-feed.xml"),
        ("Northmoor Herald, comments", "https://news.northmoor.example/comments.xml"),
    ]


def _under(folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{path}": body for path, body in files.items()}
