"""Explain where a page, a domain or a feed is, and why it is missing, over all datasets.

Datasets with a sentence are searched by the roles of their columns. What needs more than its own
rows is added by the feature that knows it: the byte range in the store, the robots rule that
decided, the states of an article, why a page is not an article, why an export leaves it out.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from urllib.parse import urlsplit

import polars as pl
import sqlalchemy as sa

from news_platform.ccnews.capture_index import CaptureFiles, CaptureQuery
from news_platform.ccnews.records import read_record
from news_platform.ccnews.scan import scan_news
from news_platform.composition.corpus_options import corpus_options, export_selection, stated_usage
from news_platform.composition.engines import engine_of
from news_platform.corpus import explain as corpus
from news_platform.corpus.rows import CrawlPage
from news_platform.datasets.corpus import CRAWL_ARTICLES, DELTA_TABLES
from news_platform.datasets.dataset import Dataset, Role, RowSentence
from news_platform.datasets.domain_store import DOMAIN_STORE
from news_platform.datasets.evidence import Evidence, Explanation, SubjectKind
from news_platform.datasets.registry import DATASETS
from news_platform.datasets.takedowns import request_path
from news_platform.domain_metadata import explain as survey
from news_platform.domain_metadata.pipeline import METADATA_DATASET
from news_platform.domain_store import explain as domain_store
from news_platform.errors import FetchError, InputError, StorageError
from news_platform.near_duplicates.reading import explain_clusters
from news_platform.resources import Resources
from news_platform.rss import explain as ledger
from news_platform.search.reading import IndexCache, IndexedDays, explain_indexes
from news_platform.storage.engines import TARGET_ROLES
from news_platform.storage.objects.store import ObjectStore
from news_platform.stories.reading import explain_links
from news_platform.takedowns.match import PageAddress, Takedowns
from news_platform.takedowns.requests import read_aliases, read_states
from news_platform.text.readable import number_of
from news_platform.web.urls import (
    canonical_url,
    has_registrable_domain,
    plain_host,
    registrable_domain,
    url_host,
)

_HOST = re.compile(r"[^\s/:@?#\\]+")
# The newest days of a dataset that are searched, beside those on which the domain store has it.
# Of a name in DNS.
_LONGEST_HOST = 253
_MOST_DAYS = 30
# Of a page that was captured hundreds of times, the newest rows are shown.
_SHOWN = 10


def explain_subject(
    resources: Resources, engine: sa.Engine | None, cache: IndexCache, subject: str
) -> Explanation:
    """Return all that is known about a URL, a domain or a feed, in any spelling.

    `engine` is the ledger, None for a root that has none. `cache` opens the search indexes. Raise
    InputError for text that is none of them.
    """
    kind = _kind(engine, subject)
    url = f"https://{registrable_domain(plain_host(subject))}/" if kind == "domain" else subject
    asked = _Question(resources, engine, cache, kind, PageAddress.of(url))
    name = asked.page.domain if kind == "domain" else asked.page.url
    evidence = tuple(asked.answers())
    known = any(one.is_known and (kind == "domain" or not _is_of_site(one)) for one in evidence)
    advice = tuple(_advice(kind, evidence, known, asked.page.domain))
    return Explanation(name, kind, evidence, known, advice)


def _is_of_site(one: Evidence) -> bool:
    """Return whether evidence is about the whole site, not about the page."""
    return one.dataset == METADATA_DATASET


@dataclass(frozen=True)
class _Question:
    """What is asked about, and where the answers are."""

    resources: Resources
    engine: sa.Engine | None
    cache: IndexCache
    kind: SubjectKind
    page: PageAddress
    # The days on which some dataset has the page; those that follow it are asked for these.
    days: set[str] = field(default_factory=set)

    @property
    def store(self) -> ObjectStore:
        return self.resources.data_root.store

    @property
    def now(self) -> datetime:
        return self.resources.clock.now()

    def answers(self) -> Iterator[Evidence]:
        """Yield what each dataset has, parents before children, then the requests for removal.

        Of what is taken down only the requests are told.
        """
        requests = list(self._takedowns())
        if any(one.state == "taken_down" for one in requests):
            yield from requests
            return
        # The index of the store knows the days without reading them.
        stored = domain_store.explain_page(self.store, self.page) if self.kind == "url" else None
        self.days.update(stored.days if stored else ())
        for name, dataset in DATASETS.items():
            if stored is not None and name == DOMAIN_STORE.name:
                yield from stored.evidence
            elif self.kind == "domain" and dataset in DELTA_TABLES:
                yield self._counted(dataset)
            elif self.kind != "domain" and dataset.sentence is not None:
                yield from self._rows(dataset, dataset.sentence)
            if name in self._own:
                yield from self._own[name]()
        yield from requests

    def _rows(self, dataset: Dataset, sentence: RowSentence) -> Iterator[Evidence]:
        """Yield a sentence for each row of the page, the newest first."""
        engine = engine_of(self.store, dataset)
        stored = sorted(engine.units(), reverse=True)
        searched = [unit for n, unit in enumerate(stored) if n < _MOST_DAYS or unit in self.days]
        rows = (
            engine.scan(searched)
            .filter(_is_near(dataset, self.page))
            .select(
                *dict.fromkeys([*dataset.columns_of(*TARGET_ROLES), *_columns(dataset, sentence)])
            )
        )
        found = [row for row in rows.collect().to_dicts() if _is_of(row, dataset, self.page)]
        self.days.update(dataset.unit(row) for row in found if dataset.partitions == "day")
        for row in sorted(found, key=dataset.unit, reverse=True)[:_SHOWN]:
            yield Evidence.of_row(dataset, row)
        if len(found) > _SHOWN:
            text = f"{len(found) - _SHOWN} further rows of {dataset.name} are not shown."
            yield Evidence(dataset.name, "listed", text)
        if len(searched) < len(stored) and not found:
            text = f"{len(stored) - len(searched)} older partitions were not searched."
            yield Evidence(dataset.name, "unknown", text)

    def _counted(self, dataset: Dataset) -> Evidence:
        mine = pl.col(*dataset.columns_of(Role.domain)) == self.page.domain
        day = pl.col("day")
        rows = engine_of(self.store, dataset).scan().filter(mine)
        count, first, last = rows.select(pl.len(), day.min().alias("a"), day.max()).collect().row(0)
        span = f" from {first} to {last}" if count else ""
        text = f"{dataset.name} has {number_of(count, 'article')} of {self.page.domain}{span}."
        return Evidence(dataset.name, "stored" if count else "absent", text, source=dataset.name)

    @cached_property
    def _own(self) -> Mapping[str, Callable[[], Iterator[Evidence]]]:
        """Return what features add after the rows of a dataset, by the kind of the subject."""
        found: dict[str, Callable[[], Iterator[Evidence]]] = {METADATA_DATASET: self._site}
        if self.kind == "domain":
            found[DOMAIN_STORE.name] = lambda: domain_store.explain_domain(
                self.store, self.page.domain
            )
        if self.engine is not None:
            found |= self._of_ledger(self.engine)
        if self.kind == "url":
            found |= {
                CRAWL_ARTICLES.name: self._missing,
                "near_duplicates": lambda: explain_clusters(self.store, self._built, self._hashes),
                "story_members": lambda: explain_links(self.store, self._built, self._hashes),
                "search_index": lambda: explain_indexes(
                    IndexedDays.read(self.store, self.cache),
                    self.cache,
                    self._built,
                    self._hashes,
                ),
                "training_export": self._export,
            }
        return found

    def _of_ledger(self, engine: sa.Engine) -> dict[str, Callable[[], Iterator[Evidence]]]:
        if self.kind == "domain":
            return {"feeds": lambda: ledger.explain_site_feeds(engine, self.page.domain)}
        if self.kind == "feed":
            return {"feeds": lambda: ledger.explain_known_feed(engine, self.page.url, now=self.now)}
        return {
            "articles": lambda: ledger.explain_article(engine, self.store, self.page),
            "article_sheets": lambda: ledger.explain_sheet_rows(engine, self.store, self.page),
        }

    def _site(self) -> Iterator[Evidence]:
        agent = self.resources.web.fetch_options.user_agent
        url = self.page.url
        # A question about a domain is about the site as a whole, as in usage_verdicts.
        path = None if self.kind == "domain" else urlsplit(url).path or "/"
        yield from survey.explain_site(
            self.store, self.page.domain, url=url, path=path, user_agent=agent
        )
        if self.kind == "domain":
            yield from survey.explain_changes(self.store, self.page.domain)

    @cached_property
    def _articles(self) -> pl.DataFrame:
        return corpus.article_rows(self.store, self.page)

    @property
    def _built(self) -> list[str]:
        return list(dict.fromkeys(self._articles["day"]))

    @property
    def _hashes(self) -> list[str]:
        return list(dict.fromkeys(self._articles["url_hash"]))

    def _missing(self) -> Iterator[Evidence]:
        """Yield why captured pages are not articles; the newest is classified again."""
        stored = set(self._articles.filter(pl.col("source") == "crawl")["day"])

        def page_of(day: str) -> CrawlPage | None:
            columns = ["uri", "tree", "fetch_status"]
            rows = scan_news(self.store, [day], hosts=[self.page.domain], columns=columns)
            found = (CrawlPage(*row) for row in rows.collect().iter_rows())
            same = (page for page in found if self.page.is_same(page.url))
            return next(same, None) or self._archived(day)

        yield from corpus.explain_missing(
            self.store,
            sorted(self.days - stored, reverse=True),
            page_of=page_of,
            options=corpus_options(self.resources.settings.corpus),
        )

    def _archived(self, day: str) -> CrawlPage | None:
        """Read a page that is only in the URL index from the crawl."""
        query = CaptureQuery.parse(self.page.url)
        for row in CaptureFiles(self.store).of_day(query, day).to_dicts():
            with suppress(StorageError, FetchError):
                crawl = self.resources.crawl.sources
                html = read_record(row, crawl=crawl, root=self.store).html
                return CrawlPage(row["url"], html, row["fetch_status"])
        return None

    def _export(self) -> Iterator[Evidence]:
        yield from corpus.explain_export(
            self.store,
            self._articles,
            selection=export_selection(self.resources.settings.corpus),
            stated_usage=stated_usage(self.store),
            covers=Takedowns.read(self.store, use="export").covers_export,
        )

    def _takedowns(self) -> Iterator[Evidence]:
        states = read_states(self.store)
        aliases = read_aliases(self.store) if states else []
        for one in states:
            request = one.request
            requested = Takedowns.of([request], aliases=aliases)
            is_domain = self.kind == "domain"
            covers = requested.covers_domain if is_domain else requested.covers
            if covers(self.page.domain if is_domain else self.page.url):
                status = one.status(self.now)
                is_over = status in ("withdrawn", "expired")
                yield Evidence(
                    "takedowns",
                    status if is_over else "taken_down",
                    f"The takedown {request.id} covers it ({status}): {request.reason}.",
                    at=request.requested_at,
                    source=request_path(request.id),
                    details={"scope": request.scope, "kind": request.kind, "status": status},
                )


def _is_near(dataset: Dataset, page: PageAddress) -> pl.Expr:
    """Return a cheap expression that is true for every row of a page, and for few others."""
    for name in dataset.columns_of(Role.domain):
        return pl.col(name) == page.domain
    # An IDN may be spelled in two ways.
    if not page.domain.isascii() or "xn--" in page.domain:
        return pl.lit(True)
    near = (
        pl.col(name).str.to_lowercase().str.contains(page.domain, literal=True)
        for name in dataset.columns_of(Role.url)
    )
    return pl.any_horizontal(*near)


def _is_of(row: Mapping[str, object], dataset: Dataset, page: PageAddress) -> bool:
    return any(page.is_same(str(row[name] or "")) for name in dataset.columns_of(Role.url))


def _columns(dataset: Dataset, sentence: RowSentence) -> list[str]:
    """Return the columns that a sentence names, and those of the partition."""
    text = " ".join((sentence.text, sentence.source, f"{{{sentence.at}}}"))
    named = set(re.findall(r"\{(\w+)\}", text))
    partition = {column.name for column in dataset.partition_columns}
    return [it.name for it in dataset.all_columns if it.name in named | partition]


def _kind(engine: sa.Engine | None, subject: str) -> SubjectKind:
    text = subject.strip()
    if len(text) <= _LONGEST_HOST and _HOST.fullmatch(text) and has_registrable_domain(text):
        return "domain"
    canonical = canonical_url(text)
    host = url_host(canonical)
    is_host = host and " " not in host and len(host) <= _LONGEST_HOST
    if not is_host or not canonical.startswith(("http:", "https:")):
        raise InputError(
            f"{subject[:200]!r} is neither a URL nor a domain: expected an address such as "
            "https://example.org/page, a domain such as example.org, or the address of a feed",
            thing=subject[:200],
        )
    return "feed" if engine is not None and ledger.is_feed(engine, canonical) else "url"


def _advice(
    kind: SubjectKind, evidence: tuple[Evidence, ...], known: bool, domain: str
) -> Iterator[str]:
    """Yield what would have to happen for something unknown to be seen."""
    if any(one.state == "taken_down" for one in evidence):
        yield "It is taken down: nothing of it is collected while the request counts."
    elif known:
        return
    elif kind == "feed":
        yield "Add the feed: `news-platform feeds add URL`."
    elif kind == "url":
        yield "Add a feed that lists it, `news-platform feeds add URL`: a worker then fetches it."
        yield (
            "Or collect the crawl of the day on which it appeared, `news-platform ccnews collect "
            f"--date YYYY-MM-DD`: Common Crawl may have captured it, if it follows {domain}."
        )
    else:
        yield f"Survey the domain: `news-platform domains import` with {domain} in the list."
        yield "Add one of its feeds: `news-platform feeds add URL`."
        yield "Or collect more days of the crawl: `news-platform ccnews collect`."
