"""Read the data under a root: each dataset as a Polars LazyFrame, or all of them with SQL.

news = news_platform.open("data-demo")
news["domain_catalog"].sort("records", descending=True).head(5).collect()
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import polars as pl
import sqlalchemy as sa

from news_platform.ccnews.article_captures import CAPTURE_TABLES, with_is_article
from news_platform.ccnews.scan import scan_news
from news_platform.datasets.corpus import STATISTICS_COLUMNS
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.domain_surveys import USAGE_VERDICTS
from news_platform.datasets.evidence import Explanation
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.datasets.registry import DATASETS, stored_parents
from news_platform.domain_store.lookup import DomainStore
from news_platform.errors import InputError
from news_platform.near_duplicates.reading import RELATIONS
from news_platform.resources import Resources, open_resources
from news_platform.search.engine import SearchAnswer, SearchOptions
from news_platform.search.index import Hit
from news_platform.search.pipeline import FoundArticle, read_rows, search_days, with_snippets
from news_platform.search.reading import IndexCache, cache_folder
from news_platform.settings import Settings, load_settings
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.outlets import with_outlets
from news_platform.storage.units import unit_files
from news_platform.takedowns.build_filters import read_hidden, without_hidden
from news_platform.text.readable import did_you_mean

# Replaced files of these stay until their grace period ends, so only `.domain_store` can read them,
# and the current version of an export.
_BY_OTHERS = frozenset({"training_export"})
_UNKNOWN_TABLE = re.compile(r"Table with name (\S+) does not exist")
_READABLE = frozenset({"parquet", "delta", "view"})


_SUMMARY = {
    "dataset": pl.String,
    "rows": pl.Int64,
    "partitions": pl.Int64,
    "first": pl.String,
    "last": pl.String,
}
DEFAULT_SEARCH = SearchOptions()


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The answer to a search, and its hits with a part of their texts if that was asked for."""

    answer: SearchAnswer
    found: tuple[FoundArticle, ...]


class NewsData:
    """The datasets under one root; nothing is opened before its first use."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def tables(self) -> Mapping[str, Dataset]:
        """Return the schema of every dataset that can be read, by name."""
        return {
            name: dataset
            for name, dataset in DATASETS.items()
            if dataset.place.engine in _READABLE and name not in _BY_OTHERS
        }

    def __repr__(self) -> str:
        with pl.Config(tbl_rows=-1, fmt_str_lengths=60, tbl_hide_dataframe_shape=True):
            return f"News Platform at {self._store.url!r}\n{self.summary()}"

    def summary(self) -> pl.DataFrame:
        """Return the rows of every dataset that has some, with its first and last partition.

        Only listings, markers and the footers of files are read.
        """
        counted = ((name, *self._extent(name)) for name in self.tables)
        rows = [(name, count, units) for name, count, units in counted if count]
        return pl.DataFrame(
            {
                "dataset": [name for name, _, _ in rows],
                "rows": [count for _, count, _ in rows],
                "partitions": [len(units) or None for _, _, units in rows],
                "first": [min(units, default=None) for _, _, units in rows],
                "last": [max(units, default=None) for _, _, units in rows],
            },
            schema=_SUMMARY,
        )

    def _extent(self, name: str) -> tuple[int, Collection[str]]:
        """Return the rows of a dataset and its partitions; none for one without partitions."""
        dataset = self.tables[name]
        if name == RAW_NEWS.name:
            # Its files are many, and their markers have the counts.
            markers = read_collected(self._store)
            return sum(one.rows for one in markers), {str(one.day) for one in markers}
        count = int(self[name].select(pl.len()).collect().item())
        if dataset.place.engine == "delta":
            return count, DeltaDataset(self._store, dataset, STATISTICS_COLUMNS).partitions()
        is_split = dataset.place.engine == "parquet" and dataset.partitions != "whole"
        return count, unit_files(self._store, dataset).keys() if is_split else ()

    def __getitem__(self, name: str) -> pl.LazyFrame:
        """Return a dataset, which is empty as long as it has no files."""
        if name not in self.tables:
            cure = did_you_mean(name, self.tables)
            raise InputError(f"unknown dataset {name!r}: {cure}", thing=name)
        if name == RAW_NEWS.name:
            return scan_news(self._store)
        return without_hidden(self._stored(name), self.tables[name], self._store)

    def _stored(self, name: str) -> pl.LazyFrame:
        if name in RELATIONS:
            return RELATIONS[name](self._store)
        if name == USAGE_VERDICTS.name:
            # It loads the whole survey: only who reads it pays for that.
            from news_platform.domain_metadata.verdicts import scan_usage_verdicts

            return scan_usage_verdicts(self._store)
        dataset = self.tables[name]
        match dataset.place.engine:
            case "view":
                return pl.concat([self[parent.dataset] for parent in stored_parents(dataset)])
            case "delta":
                return DeltaDataset(self._store, dataset, STATISTICS_COLUMNS).scan()
            case _:
                return ParquetEngine(self._store, dataset).scan()

    def sql(self, query: str, *, unsafe: bool = False, max_rows: int | None = None) -> pl.DataFrame:
        """Run a DuckDB query over all datasets; only the datasets that it names are read.

        `captures` and `capture_index` have one more column, `is_article`, from crawl_articles.
        The query reaches no file, network or setting unless it is `unsafe`.
        """
        # DuckDB takes 0.1 s to load, and only SQL needs it.
        from news_platform.storage.queries import run_query

        named = [it for it in self.tables if re.search(rf"\b{it}\b", query, re.IGNORECASE)]
        frames = {name: self[name] for name in named}
        for name in CAPTURE_TABLES & frames.keys():
            frames[name] = with_is_article(frames[name], self["crawl_articles"])
        try:
            return run_query(query, frames, unsafe=unsafe, max_rows=max_rows)
        except InputError as error:
            # DuckDB knows the tables that the query names correctly, and suggests its own.
            if (unknown := _UNKNOWN_TABLE.search(str(error))) is None:
                raise
            cure = did_you_mean(unknown[1], self.tables)
            message = f"unknown dataset {unknown[1]!r}: {cure} `sql show` lists them"
            raise InputError(message, thing=unknown[1]) from error

    def search(
        self, query: str, options: SearchOptions = DEFAULT_SEARCH, *, snippets: bool = True
    ) -> SearchPage:
        """Search the text of all articles; without days, the newest ones.

        Raise InputError with the place of a mistake in the query.
        """
        settings = self._settings.search
        options = replace(options, domains=with_outlets(self._store, options.domains))
        answer = search_days(
            self.search_cache,
            query,
            options,
            default_days=settings.days,
            today=self._resources.clock.now().date(),
            clusters_of=self._clusters_of,
            hidden=read_hidden(self._store),
        )
        read = partial(read_rows, self._store)
        texts = tuple(with_snippets(query, answer.hits, read)) if snippets else ()
        return SearchPage(answer, texts)

    def unmatched_values(self, query: str, options: SearchOptions) -> list[str]:
        """Return a line for each chosen language and domain that no article that matches has."""
        lines = []
        for name, values, wider in (
            ("language", options.languages, replace(options, languages=(), facets=("language",))),
            ("domain", options.domains, replace(options, domains=(), facets=("domain",))),
        ):
            known = self.search(query, wider, snippets=False).answer.facets[name] if values else {}
            lines += [
                f"no article of {name} {value!r} matches: {did_you_mean(value, known)}"
                for value in values
                # Without any, the query itself finds nothing.
                if known and value not in known
            ]
        return lines

    def explain(self, subject: str) -> Explanation:
        """Return all that is known about a URL, a domain or a feed, in any spelling.

        Raise InputError for text that is none of them.
        """
        # Every feature has a part in the answer: only a process that asks pays for loading them.
        from news_platform.composition.explain import explain_subject

        return explain_subject(self._resources, self.known_ledger(), self.search_cache, subject)

    def _clusters_of(self, hits: Sequence[Hit]) -> Sequence[str | None]:
        # Only a search for one article per cluster pays for loading them.
        from news_platform.near_duplicates.reading import cluster_names

        return cluster_names(self._store, [(hit.day, hit.source, hit.url_hash) for hit in hits])

    @cached_property
    def search_cache(self) -> IndexCache:
        """Return what opens the search indexes, by copies on this machine."""
        given = self._settings.search
        folder = cache_folder(self._store, given.cache)
        return IndexCache(self._store, folder, max_bytes=given.cache_mb << 20)

    @property
    def domain_store(self) -> DomainStore:
        """Return the lookup of records by domain."""
        return DomainStore(self._store)

    @property
    def ledger(self) -> sa.Engine:
        """Return the SQL ledger of queues, feeds and articles."""
        return self._resources.ledger.engine

    def known_ledger(self) -> sa.Engine | None:
        """Return the SQL ledger, or None for a root that has none: nothing is created."""
        # Only a local root has a ledger of its own.
        if "://" in self._store.url and not self._settings.ledger_url:
            return None
        return self._resources.ledger.existing_engine()

    @cached_property
    def _resources(self) -> Resources:
        return open_resources(self._settings, access=RootAccess.READ)

    @property
    def _store(self) -> ObjectStore:
        return self._resources.data_root.store


def open_root(root: str | Path) -> NewsData:
    """Open a root for reading, with the settings of this process."""
    return NewsData(load_settings(os.environ).model_copy(update={"root": str(root)}))
