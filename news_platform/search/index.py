"""Build and read one immutable tantivy index in a local folder.

The text is indexed, not stored: what a hit shows beside its title is read from the article tables.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache, partial
from pathlib import Path

import tantivy

from news_platform.errors import StorageError
from news_platform.isolation.boundary import panics_as
from news_platform.search.query import (
    EXACT_FIELDS,
    TEXT_FIELDS,
    AllOf,
    AnyOf,
    Condition,
    DayRange,
    Exact,
    NotOf,
    Phrase,
)
from news_platform.search.words import STEMMERS, analyzer, fold, form_analyzer, stem
from news_platform.storage.chunks import chunked

_ANALYZER = "words"
_SHOWN = ("url", "canonical_url", "title", "source")
# What a title says weighs more than the same words in the text.
_BOOSTS = {"title": 2.0}
# One thread: the documents of a day keep their order, so the same rows give the same answers.
_HEAP_BYTES = 256 * 1024 * 1024
_FACET_VALUES = 1_000
# Counts what a facet leaves out; no domain, language or day has this name.
OTHER = "other"
_BATCH = 256
_JSON = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class SearchableArticle:
    """What is indexed of one article of either table; `at` is when it was published or fetched."""

    url: str
    canonical_url: str
    url_hash: str
    domain: str
    language: str
    day: str
    source: str
    at: datetime
    title: str
    text: str
    authors: Sequence[str] = ()
    section: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """One article that was found."""

    score: float
    at: datetime
    url: str
    canonical_url: str
    url_hash: str
    title: str
    source: str
    domain: str
    language: str
    day: str


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A hit that is not read yet: its score, or its time in seconds if the newest come first."""

    order: float
    read: Callable[[], Hit]


@dataclass(frozen=True, slots=True)
class IndexAnswer:
    """The best hits of one index in their order, and the number of all that match."""

    ranked: tuple[RankedHit, ...]
    count: int

    @property
    def hits(self) -> tuple[Hit, ...]:
        """Read all of the hits."""
        return tuple(one.read() for one in self.ranked)


def build_index(folder: Path, articles: Iterable[SearchableArticle]) -> int:
    """Write a new index into an empty folder and return how many articles it holds."""
    index = tantivy.Index(_schema(), path=str(folder))
    _register(index)
    writer = index.writer(_HEAP_BYTES, num_threads=1)
    count = 0
    # The library's thread takes documents from a queue: filled at once, it does not wait for each.
    documents = map(_document, articles)
    for batch in chunked(documents, _BATCH):
        for document in batch:
            writer.add_document(document)
        count += len(batch)
    writer.commit()
    writer.wait_merging_threads()
    return count


_CAUSE_CHARS = 160


def damaged_index(name: str, cause: str) -> StorageError:
    """Return the error of an index that cannot be read, by the name of its key and build."""
    cure = "delete its marker under markers/search_index and run `news-platform search --build`"
    # The library may quote a whole file.
    shown = f"{cause[:_CAUSE_CHARS]}…" if len(cause) > _CAUSE_CHARS else cause
    return StorageError(f"the search index {name!r} is damaged ({shown}): {cure}", thing=name)


class IndexReader:
    """An open index, or some of its days: the others have a newer index of their own."""

    _restriction: Condition | None = None

    def __init__(self, folder: Path) -> None:
        self._name = folder.name
        self._index = tantivy.Index.open(str(folder))
        _register(self._index)
        # An index never changes: no thread need watch its folder.
        self._index.config_reader(reload_policy="manual")
        self._schema = self._index.schema
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        """Return the number of articles."""
        if self._restriction is None:
            return int(self._searcher.num_docs)
        return self.search(AllOf(()), limit=1, newest_first=False).count

    def within(self, days: Condition) -> "IndexReader":
        """Return the same open index, of which only these days count."""
        restricted = copy(self)
        restricted._restriction = days
        return restricted

    def without(self, covers: Callable[[str], bool], domains: Iterable[str]) -> "IndexReader":
        """Return the same open index without the articles whose canonical URLs are covered.

        They are articles of these domains.
        """
        some = AnyOf(tuple(Exact("domain", domain) for domain in domains))
        count = self.search(some, limit=1, newest_first=False).count
        found = self.search(some, limit=count, newest_first=False).hits if count else ()
        gone = [Exact("url_hash", hit.url_hash) for hit in found if covers(hit.canonical_url)]
        if not gone:
            return self
        left: Condition = NotOf(AnyOf(tuple(gone)))
        return self.within(AllOf((left, self._restriction)) if self._restriction else left)

    def search(self, condition: Condition, *, limit: int, newest_first: bool) -> IndexAnswer:
        """Return the best or the newest hits."""
        query = self._restricted(condition)
        order = "at" if newest_first else None
        with panics_as(self._damaged, also=(ValueError,)):
            found = self._searcher.search(query, limit, order_by_field=order)
        ranked = [
            RankedHit(float(order), partial(self._hit, address, order))
            for order, address in found.hits
        ]
        count: int = found.count  # type: ignore[attr-defined] # its stub lacks it
        return IndexAnswer(tuple(ranked), count)

    def iter_articles(self) -> Iterator[Hit]:
        """Yield what is stored of every article."""
        if len(self):
            yield from self.search(AllOf(()), limit=len(self), newest_first=False).hits

    def facets(self, condition: Condition, field: str) -> dict[str, int]:
        """Return how many matching articles each value of a field has, and all others."""
        terms = {"terms": {"field": field, "size": _FACET_VALUES}}
        with panics_as(self._damaged, also=(ValueError,)):
            found = self._searcher.aggregate(self._restricted(condition), {"values": terms})
        counts = {str(one["key"]): int(one["doc_count"]) for one in found["values"]["buckets"]}
        other = int(found["values"].get("sum_other_doc_count") or 0)
        return counts | ({OTHER: other} if other else {})

    def _hit(self, address: tantivy.DocAddress, order: float | int) -> Hit:
        with panics_as(self._damaged, also=(ValueError, LookupError, TypeError, OverflowError)):
            stored = self._searcher.doc(address).to_dict()
            at = datetime.fromtimestamp(stored["at"][0], UTC)
            values = {name: stored[name][0] for name in (*EXACT_FIELDS, "url_hash")}
            return Hit(score=float(order), at=at, **values, **json.loads(bytes(stored["shown"][0])))

    def _damaged(self, cause: str) -> StorageError:
        return damaged_index(self._name, cause)

    def _restricted(self, condition: Condition) -> tantivy.Query:
        if self._restriction is not None:
            condition = AllOf((condition, self._restriction))
        return self._query(condition)

    def _query(self, condition: Condition) -> tantivy.Query:
        match condition:
            case Phrase():
                found = [self._phrase(name, condition.words) for name in condition.fields]
                return self._any([*found, *self._forms(condition)])
            case Exact():
                return tantivy.Query.term_query(self._schema, condition.field, condition.value)
            case DayRange():
                return self._days(condition)
            case AllOf():
                return self._all(condition.parts)
            case AnyOf():
                return self._any([self._query(part) for part in condition.parts])
            case NotOf():
                return self._all((condition,))

    def _all(self, parts: Sequence[Condition]) -> tantivy.Query:
        wanted = [part for part in parts if not isinstance(part, NotOf)]
        refused = [part.part for part in parts if isinstance(part, NotOf)]
        # tantivy finds nothing for a query of exclusions alone.
        must = [self._query(part) for part in wanted] or [tantivy.Query.all_query()]
        return tantivy.Query.boolean_query(
            [
                *((tantivy.Occur.Must, query) for query in must),
                *((tantivy.Occur.MustNot, self._query(part)) for part in refused),
            ]
        )

    def _any(self, queries: Sequence[tantivy.Query]) -> tantivy.Query:
        if len(queries) == 1:
            return queries[0]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])

    def _forms(self, phrase: Phrase) -> Iterator[tantivy.Query]:
        """Yield the searches for other forms of a word, by the rules of each language."""
        for language in STEMMERS if phrase.with_forms else ():
            found = stem(phrase.words[0], language)
            with suppress(ValueError):  # an index of an earlier version, until it is built again
                yield tantivy.Query.term_query(self._schema, _forms_field(language), found)

    def _phrase(self, field: str, words: Sequence[str]) -> tantivy.Query:
        if len(words) == 1:
            query = tantivy.Query.term_query(self._schema, field, words[0], "position")
        else:
            query = tantivy.Query.phrase_query(self._schema, field, list(words))
        return tantivy.Query.boost_query(query, _BOOSTS[field]) if field in _BOOSTS else query

    def _days(self, days: DayRange) -> tantivy.Query:
        return tantivy.Query.range_query(
            self._schema,
            "day_number",
            tantivy.FieldType.Integer,
            _day_number(days.first),
            _day_number(days.last),
        )


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name=_ANALYZER, index_option="position")
    for language in STEMMERS:
        name = _forms_field(language)
        builder.add_text_field(name, tokenizer_name=name, index_option="basic")
    for name in EXACT_FIELDS:
        builder.add_text_field(name, stored=True, fast=True, tokenizer_name="raw")
    builder.add_text_field("url_hash", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("at", stored=True, fast=True)
    builder.add_integer_field("day_number", fast=True, indexed=True)
    # As one value, because every text field of the library is indexed, too.
    builder.add_bytes_field("shown", stored=True)
    return builder.build()


def _forms_field(language: str) -> str:
    return f"forms_{language}"


def _register(index: tantivy.Index) -> None:
    index.register_tokenizer(_ANALYZER, analyzer())
    for language in STEMMERS:
        index.register_tokenizer(_forms_field(language), form_analyzer(language))


def _document(article: SearchableArticle) -> tantivy.Document:
    document = tantivy.Document()
    add = document.add_text
    title, text = fold(article.title), fold(article.text)
    add("title", title)
    add("text", text)
    if article.language in STEMMERS:
        add(_forms_field(article.language), f"{title}\n{text}")
    if article.authors:
        add("authors", fold("\n".join(article.authors)))
    if article.section:
        add("section", fold(article.section))
    add("url_hash", article.url_hash)
    for name in EXACT_FIELDS:
        add(name, getattr(article, name))
    document.add_integer("at", int(article.at.timestamp()))
    document.add_integer("day_number", _day_number(article.day))
    shown = {name: getattr(article, name) for name in _SHOWN}
    document.add_bytes("shown", _JSON.encode(shown).encode())
    return document


@lru_cache(1024)
def _day_number(day: str) -> int:
    return date.fromisoformat(day).toordinal()
