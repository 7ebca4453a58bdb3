"""The JSON documents of the API; the pages and the MCP tools show the same ones."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

API_PREFIX = "/api/v1/"


class Document(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return the document of a row, which may have more columns."""
        return cls.model_validate({name: row[name] for name in cls.model_fields})


class ProblemDocument(Document):
    """Why a request was not answered."""

    status: int = Field(description="HTTP status")
    message: str = Field(description="what is wrong, and the cure where there is one")


class ErrorDocument(Document):
    """The body of every answer with a status of 400 or more."""

    error: ProblemDocument


def error_body(status: int, message: str) -> bytes:
    """Return the body of an answer that failed."""
    problem = ProblemDocument(status=status, message=message)
    return ErrorDocument(error=problem).model_dump_json().encode()


class HitDocument(Document):
    """One article that was found."""

    url: str
    url_hash: str = Field(description="key of the article: SHA-256 hex of its canonical address")
    title: str
    domain: str
    language: str
    day: str = Field(description="day of its WARC, or on which a feed's article was stored")
    at: datetime = Field(description="when it was published, or else fetched")
    source: str = Field(description="`crawl` or `feed`")
    score: float
    snippet: str = Field(description="a part of the text")
    marks: tuple[tuple[int, int], ...] = Field(description="places of the found words in snippet")


class SearchDocument(Document):
    """The answer to a search."""

    query: str
    count: int = Field(description="articles that match in all")
    hits: tuple[HitDocument, ...]
    facets: Mapping[str, Mapping[str, int]] = Field(description="counts by domain, language, day")
    advice: tuple[str, ...] = Field(description="languages and domains that no article has")
    next_cursor: str | None = Field(description="`cursor` of the next page; null: this is the last")


class CaptureDocument(Document):
    """One time at which an article was fetched, and where its bytes lie."""

    day: str
    source: str
    fetched_at: datetime
    warc: str | None = Field(description="path of the WARC in the crawl; null for feeds")
    record_offset: int | None = Field(description="first byte of the record in the WARC")
    record_length: int | None = Field(description="bytes of the stored record, one gzip member")
    extractor_version: str | None


class ClusterMemberDocument(Document):
    """An article with a near-identical text."""

    url: str
    url_hash: str
    domain: str
    source: str
    seen_at: datetime
    day: str
    jaccard: float | None = Field(description="with the most similar earlier article")


class ClusterDocument(Document):
    """The near-identical articles of an article, itself included, oldest first."""

    cluster_id: str
    first_seen_at: datetime
    size: int
    members: tuple[ClusterMemberDocument, ...] = Field(description="the first 50")


class ArticleDocument(Document):
    """An article of the corpus with its text, facts, cluster and provenance."""

    url: str
    canonical_url: str
    url_hash: str
    domain: str
    title: str | None
    subtitle: str | None
    authors: tuple[str, ...]
    published_at: datetime | None
    section: str | None
    tags: tuple[str, ...]
    category_guess: str | None
    article_type: str | None
    language: str | None
    language_probability: float | None
    text: str
    text_hash: str | None
    word_count: int | None
    quality_flags: tuple[str, ...]
    confidence: float | None
    image_url: str | None
    is_paywalled: bool | None
    text_source: str | None
    source: str
    day: str
    fetched_at: datetime
    captures: tuple[CaptureDocument, ...] = Field(description="newest first; this one included")
    cluster: ClusterDocument | None


class ArticleLinkDocument(Document):
    """An article in a list."""

    url: str
    url_hash: str
    title: str | None
    domain: str
    language: str | None
    day: str
    at: datetime


class DayCountDocument(Document):
    """Pages and articles of one day."""

    day: str
    pages: int = Field(description="pages of the crawl, whatever they are")
    articles: int = Field(description="articles of crawl and feeds")


class FeedDocument(Document):
    """A feed."""

    feed_url: str
    title: str | None
    domain: str
    feed_group: str | None
    status: str
    health_score: int | None
    last_entry_date: datetime | None
    last_crawled: datetime | None
    usual_gap_seconds: int | None = Field(description="median gap between its entries")
    interval_seconds: int | None = Field(description="current interval between polls")
    failing_since: datetime | None
    notes: str | None = Field(description="why it was rejected, or what failed")


class SurveyDocument(Document):
    """What one survey of a domain found."""

    date: str
    outcome: str | None
    robots_status: int | None
    usage_index: str | None
    usage_search: str | None
    usage_ai_input: str | None
    usage_ai_train: str | None
    llms_txt: bool | None


class PolicyChangeDocument(Document):
    """A policy or statement that differs from the survey before."""

    date: str
    domain: str
    bot: str | None
    label: str | None
    signal: str | None
    change: str
    before: str | None
    after: str | None
    before_date: str | None
    raw_diff: str | None = Field(description="lines that disappeared (-) and appeared (+)")


class VerdictDocument(Document):
    """What a domain says to a crawler about one purpose, and by which statement."""

    domain: str
    country: str | None
    bot: str = Field(description="crawler; `*`: every crawler without rows of its own")
    operator: str | None
    purpose: str = Field(description="index, search, ai_input or ai_train")
    verdict: str = Field(description="allow, refuse, partial, unspecified or conflicting")
    since: str | None = Field(description="day of the first survey in a row with this verdict")
    statement: str | None = Field(description="what it follows from, as stated")
    system: str | None
    source: str | None = Field(description="file or page of the statement")
    line: int | None
    read_at: datetime | None


class DuplicateDocument(Document):
    """An article of a domain and a near-identical one of another domain."""

    ours: str
    ours_hash: str
    theirs: str
    theirs_hash: str
    their_domain: str
    seen_at: datetime = Field(description="when the later of the two was fetched")


class DomainDocument(Document):
    """What is known about a domain."""

    domain: str
    pages: int
    first_day: date | None
    last_day: date | None
    days: tuple[DayCountDocument, ...] = Field(description="oldest first, the newest 60")
    languages: Mapping[str, int] = Field(description="pages by language, most first")
    feeds: tuple[FeedDocument, ...]
    surveys: tuple[SurveyDocument, ...] = Field(description="newest first")
    changes: tuple[PolicyChangeDocument, ...] = Field(description="newest first")
    policies: tuple[VerdictDocument, ...] = Field(description="of the newest survey")
    articles: tuple[ArticleLinkDocument, ...] = Field(description="newest first, at most 20")
    copied_from: tuple[DuplicateDocument, ...] = Field(description="others had the text before")
    copied_by: tuple[DuplicateDocument, ...] = Field(description="others had the text later")


class PoliciesDocument(Document):
    """Who allows and refuses what, since when, and by which statement."""

    domains: int = Field(description="surveyed domains")
    purposes: Mapping[str, Mapping[str, int]] = Field(
        description="domains by purpose and verdict, for crawlers that nobody names"
    )
    crawlers: Mapping[str, Mapping[str, int]] = Field(
        description="domains by named crawler and its verdict on `ai_train`, most refused first"
    )
    verdicts: tuple[VerdictDocument, ...] = Field(description="one page of them")
    changes: tuple[PolicyChangeDocument, ...] = Field(description="newest first, at most 50")
    count: int = Field(description="verdicts that match in all")
    advice: tuple[str, ...] = Field(description="the name of a domain that is not surveyed")
    next_cursor: str | None


class OverviewDocument(Document):
    """What is in here."""

    articles: int
    domains: int
    feeds: int = Field(description="feeds that are polled")
    first_day: str | None
    last_day: str | None
    days: Mapping[str, int] = Field(description="articles by day, the newest 60")
    languages: Mapping[str, int] = Field(description="articles by language, most first")


class FeedsDocument(Document):
    """The feeds, by group and health."""

    count: int
    groups: Mapping[str, int]
    statuses: Mapping[str, int]
    feeds: tuple[FeedDocument, ...] = Field(description="at most 500, the least healthy first")


class EditDocument(Document):
    """A change of an article by its publisher."""

    url: str
    url_hash: str
    title: str | None
    domain: str
    language: str | None
    at: datetime
    revision: int = Field(description="number of the change, or of all changes")
    headline: tuple[tuple[str, str], ...] = Field(description="as `parts`; empty if it stayed")
    parts: tuple[tuple[str, str], ...] = Field(description="same, removed or added, and the text")


class EditsDocument(Document):
    """What publishers changed after they published."""

    edits: tuple[EditDocument, ...] = Field(description="newest first, at most 40")
    most_edited: tuple[EditDocument, ...] = Field(description="articles with several changes")


class SeriesDocument(Document):
    """The attention that one query found."""

    query: str
    count: int
    counts: tuple[int, ...] = Field(description="articles on each of `days`")
    shares: tuple[float, ...] = Field(description="of all articles of the day")
    languages: Mapping[str, float] = Field(description="share of the articles in a language")
    outlets: Mapping[str, float] = Field(description="share of the articles of a domain")


class AttentionDocument(Document):
    """The share of all articles that queries find, day by day."""

    days: tuple[str, ...]
    totals: tuple[int, ...] = Field(description="all articles of each day")
    series: tuple[SeriesDocument, ...]
    advice: tuple[str, ...] = Field(description="languages and domains that no article has")


class EvidenceDocument(Document):
    """One thing that a dataset says about a subject."""

    dataset: str
    state: str
    text: str
    at: datetime | None
    source: str
    details: Mapping[str, str]


class ExplainDocument(Document):
    """Where a URL, domain or feed is, and why."""

    subject: str
    kind: str = Field(description="url, domain or feed")
    known: bool
    evidence: tuple[EvidenceDocument, ...] = Field(description="in the order of the pipeline")
    advice: tuple[str, ...] = Field(description="what would have to happen for it to be seen")


class AssetStatusDocument(Document):
    """The stale partitions of an asset."""

    model_config = ConfigDict(frozen=True, extra="allow")

    asset: str
    stale: int
    text: str
    error: str
    next_attempt: str | None


class StatusDocument(Document):
    """What is behind, running, waiting or stopped."""

    paused: bool
    pause: str = Field(description="what resuming costs; empty: the root is not paused")
    dagster: bool = Field(description="whether runs and attempts are known")
    assets: tuple[AssetStatusDocument, ...]
