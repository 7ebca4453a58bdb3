"""Join what every feature knows about a URL, a domain or a feed, in the order of the pipeline."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from news_platform.ccnews import explain as crawl
from news_platform.composition.corpus_options import corpus_options, export_selection, stated_usage
from news_platform.corpus import explain as corpus
from news_platform.corpus.worker_types import JudgedPage
from news_platform.datasets.evidence import Evidence, Explanation, SubjectKind
from news_platform.domain_metadata import explain as survey
from news_platform.domain_store import explain as domain_store
from news_platform.errors import InputError
from news_platform.near_duplicates import explain as clusters
from news_platform.resources import Resources, alarm_options
from news_platform.rss import explain as articles
from news_platform.rss import explain_feeds as feeds
from news_platform.search import explain as search
from news_platform.search.reading import IndexCache
from news_platform.source_records import explain as records
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns import explain as takedowns
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.spellings import PageAddress
from news_platform.web.urls import (
    canonical_url,
    has_registrable_domain,
    plain_host,
    registrable_domain,
    url_host,
)

_HOST = re.compile(r"[^\s/:@?#\\]+")


def explain_subject(
    resources: Resources, engine: sa.Engine | None, cache: IndexCache, subject: str
) -> Explanation:
    """Return all that is known about a URL, a domain or a feed, in any spelling.

    `engine` is the ledger, None for a root that has none. `cache` opens the search indexes. Raise
    InputError for text that is none of them.
    """
    parts = _Parts(resources, engine, cache)
    kind = _kind(parts.engine, subject)
    if kind == "domain":
        domain = registrable_domain(plain_host(subject))
        return _explanation(domain, kind, parts.of_domain(domain), domain)
    page = PageAddress.of(subject)
    found = parts.of_feed(page) if kind == "feed" else parts.of_page(page)
    return _explanation(page.url, kind, found, page.domain)


def _explanation(
    subject: str, kind: SubjectKind, found: Iterator[Evidence], domain: str
) -> Explanation:
    evidence = tuple(found)
    known = any(one.is_known and not _is_about_the_site(one, kind) for one in evidence)
    return Explanation(
        subject, kind, evidence, known, tuple(_advice(kind, evidence, known, domain))
    )


def _is_about_the_site(one: Evidence, kind: SubjectKind) -> bool:
    """Return whether evidence speaks of the site as a whole while a page was asked for."""
    return kind != "domain" and one.room == survey.ROOM


@dataclass(frozen=True)
class _Parts:
    """The parts of all features over one root."""

    resources: Resources
    engine: sa.Engine | None
    cache: IndexCache

    @property
    def store(self) -> ObjectStore:
        return self.resources.data_root.store

    @property
    def now(self) -> datetime:
        return self.resources.clock.now()

    def of_page(self, page: PageAddress) -> Iterator[Evidence]:
        """Yield what is known about a page, from the crawl to the takedowns."""
        stored = domain_store.explain_page(self.store, page)
        crawled = crawl.explain_page(self.store, page, days=stored.days)
        yield from crawled.evidence
        yield from stored.evidence
        yield from self._site(page)
        if self.engine is not None:
            yield from articles.explain_article(self.engine, self.store, page)
        found = corpus.explain_page(self.store, page, crawled=crawled.days, judge=self._judge(page))
        yield from found.evidence
        if found.days:
            yield from clusters.explain_clusters(self.store, found.days, found.hashes)
            yield from search.explain_index(self.store, self.cache, found.days, found.hashes)
        if self.engine is not None:
            yield from feeds.explain_sheet_rows(self.engine, self.store, page)
        if found.days:
            yield from self._export(found)
        yield from records.explain_page(self.store, page)
        yield from takedowns.explain_page(self.store, page.url, now=self.now)

    def of_feed(self, page: PageAddress) -> Iterator[Evidence]:
        """Yield what is known about a feed."""
        yield from crawl.explain_feed_links(self.store, {page.url})
        yield from self._site(page)
        if self.engine is not None:
            alarms = alarm_options(self.resources.settings)
            yield from feeds.explain_known_feed(self.engine, page.url, alarms=alarms, now=self.now)
        yield from takedowns.explain_page(self.store, page.url, now=self.now)

    def of_domain(self, domain: str) -> Iterator[Evidence]:
        """Yield what is known about a domain."""
        yield from domain_store.explain_domain(self.store, domain)
        yield from self._site(PageAddress.of(f"https://{domain}/"))
        yield from survey.explain_changes(self.store, domain)
        if self.engine is not None:
            yield from feeds.explain_site_feeds(self.engine, domain)
        yield from corpus.explain_domain(self.store, domain)
        yield from takedowns.explain_domain(self.store, domain, now=self.now)

    def _judge(self, page: PageAddress) -> corpus.Judge:
        """Return the judgement about the page of a day, as the corpus makes it today."""

        def judge(day: str) -> JudgedPage | None:
            html = crawl.page_html(self.store, page, day=day)
            if html is None:
                return None
            return corpus.judge_again(
                page.url, html, corpus_options(self.resources.settings.corpus)
            )

        return judge

    def _site(self, page: PageAddress) -> Iterator[Evidence]:
        agent = self.resources.web.fetch_options.user_agent
        yield from survey.explain_site(self.store, page.domain, url=page.url, user_agent=agent)

    def _export(self, found: corpus.CorpusAnswer) -> Iterator[Evidence]:
        settings = self.resources.settings.corpus
        yield from corpus.explain_export(
            self.store,
            found,
            selection=export_selection(settings),
            stated_usage=stated_usage(self.store),
            covers=Takedowns.read(self.store, use="removal").covers,
        )


def _kind(engine: sa.Engine | None, subject: str) -> SubjectKind:
    text = subject.strip()
    if _HOST.fullmatch(text) and has_registrable_domain(text):
        return "domain"
    canonical = canonical_url(text)
    host = url_host(canonical)
    if not host or " " in host or not canonical.startswith(("http:", "https:")):
        raise InputError(
            f"{subject[:200]!r} is neither a URL nor a domain: expected an address such as "
            "https://example.org/page, a domain such as example.org, or the address of a feed",
            thing=subject[:200],
        )
    return "feed" if engine is not None and feeds.is_feed(engine, canonical) else "url"


def _advice(
    kind: SubjectKind, evidence: tuple[Evidence, ...], known: bool, domain: str
) -> Iterator[str]:
    """Yield what would have to happen for something unknown to be seen."""
    if any(one.state == "taken_down" for one in evidence):
        yield "It is taken down: nothing of it is collected while the request counts."
        return
    if known:
        return
    if kind == "feed":
        yield "Add the feed: `news-platform feeds add URL`."
        return
    if kind == "url":
        yield "Add a feed that lists it, `news-platform feeds add URL`: a worker then fetches it."
        yield (
            f"Or collect the crawl of the day on which it appeared, `news-platform ccnews collect "
            f"--date YYYY-MM-DD`: Common Crawl may have captured it, if it follows {domain}."
        )
    else:
        yield f"Survey the domain: `news-platform domains import` with {domain} in the list."
        yield "Add one of its feeds: `news-platform feeds add URL`."
        yield "Or collect more days of the crawl: `news-platform ccnews collect`."
