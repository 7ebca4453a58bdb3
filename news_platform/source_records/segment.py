"""One page in, its source records out in reading order; a failed page gives its error."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from news_platform.datasets.source_records import Meta, Provenance, SourceRecord
from news_platform.errors import InputError
from news_platform.source_records.blocks import Verdict, Walked, iter_kept
from news_platform.source_records.boilerplate import boilerplate_reasons
from news_platform.source_records.decisions import (
    attach_headings,
    drop_by_language,
    drop_by_length,
    drop_repeated,
    merge_tables,
)
from news_platform.source_records.dom import decode, parse_html
from news_platform.source_records.markdown import is_markup, read_markdown
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.sections import HeadingPath, heuristics
from news_platform.source_records.walk import walk

# The largest real pages have some thousands; more could not be judged within seconds.
MAX_BLOCKS = 20_000


@dataclass(frozen=True, slots=True)
class Page:
    """A stored page and what is known of it; `content` is HTML, or markdown or plain text."""

    content: str | bytes
    url: str
    institution: str
    media: Literal["html", "text"] = "html"
    fetched_at: datetime | None = None
    charset: str | None = None
    language: str | None = None
    snapshot: str | None = None


@dataclass(frozen=True, slots=True)
class Segmented:
    """What became of a page: every block with its fate and the records, or the error."""

    page: Page
    verdicts: tuple[Verdict, ...]
    records: tuple[SourceRecord, ...]
    error: str | None = None


def segment_page(
    html: str | bytes,
    *,
    url: str,
    institution: str,
    options: SegmentOptions | None = None,
    fetched_at: datetime | None = None,
) -> list[SourceRecord]:
    """Return the records of a page; of one that cannot be read, one with text "" and meta.error.

    Text without any tag is read as markdown.
    """
    page = Page(html, url=url, institution=institution, fetched_at=fetched_at)
    return list(segment(page, options or SegmentOptions()).records)


def segment(page: Page, options: SegmentOptions) -> Segmented:
    """Cut a page into blocks, decide about each, and make records of those that stay."""
    try:
        text, charset = _text(page)
        walked = _walked(text, charset, page, options)
        _check_blocks(walked)
    except InputError as error:
        return failed(page, str(error))
    verdicts = judge(walked, options, declared=page.language or walked.language)
    return Segmented(page, tuple(verdicts), tuple(_iter_records(page, verdicts, charset)))


def failed(page: Page, error: str) -> Segmented:
    """Return what a page that cannot be read becomes: one empty record that says why."""
    meta = Meta(charset=page.charset, snapshot=page.snapshot, error=error)
    record = SourceRecord("", Provenance(page.institution, page.url, None, page.fetched_at), meta)
    return Segmented(page, (), (record,), error)


def judge(page: Walked, options: SegmentOptions, *, declared: str | None) -> list[Verdict]:
    """Decide about every block: structure, section rules, length, language, repetition."""
    reasons = boilerplate_reasons(page, options.boilerplate)
    verdicts = [
        Verdict(block, order, reason)
        for order, (block, reason) in enumerate(zip(page.blocks, reasons, strict=True))
    ]
    if options.tables == "structure":
        merge_tables(verdicts)
    _apply_sections(verdicts, options)
    drop_by_length(verdicts, options)
    drop_by_language(verdicts, options, declared=declared)
    drop_repeated(verdicts, options)
    if options.headings == "attach":
        attach_headings(verdicts)
    return verdicts


def _apply_sections(verdicts: list[Verdict], options: SegmentOptions) -> None:
    """Give every block its heading path, and drop what only leads elsewhere."""
    rules, path = heuristics(options.sections), HeadingPath()
    below: int | None = None
    for verdict in iter_kept(verdicts):
        block = verdict.block
        if block.level:
            path.enter(block)
            if below is None or block.level <= below:
                below = block.level if rules.drops_section(block) else None
        verdict.section = path.section
        verdict.reason = "dropped_section" if below is not None else rules.reason(block)


def _check_blocks(walked: Walked) -> None:
    if not walked.blocks:
        raise InputError("the page has no text")
    if len(walked.blocks) > MAX_BLOCKS:
        raise InputError(f"the page has {len(walked.blocks)} blocks, at most {MAX_BLOCKS} are read")


def _text(page: Page) -> tuple[str, str]:
    if isinstance(page.content, str):
        return page.content, page.charset or "utf-8"
    return decode(page.content, declared=page.charset)


def _walked(text: str, charset: str, page: Page, options: SegmentOptions) -> Walked:
    if page.media == "text" or not is_markup(text):
        return read_markdown(text)
    # What is UTF-8 already need not be encoded once more.
    html = page.content if charset == "utf-8" else text
    return walk(parse_html(html), zone_share=options.boilerplate.zone_share)


def _iter_records(page: Page, verdicts: list[Verdict], charset: str) -> Iterator[SourceRecord]:
    origin = Provenance(page.institution, page.url, None, page.fetched_at)
    for verdict in iter_kept(verdicts):
        if verdict.section != origin.section:
            origin = Provenance(page.institution, page.url, verdict.section, page.fetched_at)
        yield SourceRecord(verdict.block.text, origin, _meta(page, verdict, charset))


def _meta(page: Page, verdict: Verdict, charset: str) -> Meta:
    block, language = verdict.block, verdict.language
    code = probability = source = None
    if language:
        code, probability, source = language.code, language.probability, language.source
    return Meta(
        code, charset, block.hints, block.kind, verdict.order, probability, source, page.snapshot
    )
