"""What is left of a page after length bounds, language and repetition; the order is kept."""

import re
from collections.abc import Sequence
from functools import lru_cache

from news_platform.source_records.duplicates import SeenTexts
from news_platform.source_records.languages import judge_languages
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.verdicts import Verdict, iter_kept


def drop_by_length(verdicts: Sequence[Verdict], options: SegmentOptions) -> None:
    """Drop what is too short or too long, unless the whitelist knows its section or text."""
    for verdict in iter_kept(verdicts):
        size = len(verdict.block.text)
        if options.min_chars <= size <= options.max_chars or _is_whitelisted(verdict, options):
            continue
        verdict.reason = "too_short" if size < options.min_chars else "too_long"


def drop_by_language(
    verdicts: Sequence[Verdict], options: SegmentOptions, *, declared: str | None
) -> None:
    """Drop what is in another language than the target."""
    judge_languages(
        verdicts, sure=options.min_probability, target=options.language, declared=declared
    )
    for verdict in iter_kept(verdicts):
        if verdict.language and verdict.language.code not in (None, options.language):
            verdict.reason = "language"


def drop_repeated(verdicts: Sequence[Verdict], options: SegmentOptions) -> None:
    """Drop what says the same as an earlier block of the page."""
    seen = SeenTexts(similarity=options.similarity, shingle_words=options.shingle_words)
    for verdict in iter_kept(verdicts):
        if seen.is_repeated(verdict.block.text):
            verdict.reason = "duplicate"


def _is_whitelisted(verdict: Verdict, options: SegmentOptions) -> bool:
    pattern = _whitelist(options.whitelist)
    return bool(
        pattern and (pattern.search(verdict.block.text) or pattern.search(verdict.section or ""))
    )


@lru_cache(maxsize=32)
def _whitelist(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
