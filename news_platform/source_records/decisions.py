"""Decide for every block of a page whether it is kept, or the reason why it is dropped."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import (
    ATTACHED,
    BlockDecision,
    WalkedPage,
    iter_kept,
    join_cells,
)
from news_platform.source_records.boilerplate import drop_boilerplate
from news_platform.source_records.languages import detect_languages
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.sections import apply_sections
from news_platform.text.normalize import jaccard, shingles, words


class SeenTexts:
    """The texts seen so far, indexed to find a near-identical one without comparing all pairs.

    Two sets of n shingles with Jaccard `similarity` share one of the first (1 - similarity)·n + 1
    shingles of either in any fixed order, so only texts that share one of those are compared.
    """

    def __init__(self, *, similarity: float, shingle_words: int) -> None:
        self._similarity = similarity
        self._size = shingle_words
        self._by_prefix: dict[str, list[int]] = defaultdict(list)
        self._long: list[tuple[str, frozenset[str]]] = []
        self._short: dict[str, str] = {}
        # In texts with fewer words, one different word makes the similarity too low: compare them
        # for equality.
        self._few_words = math.ceil(1 / max(1 - similarity, 1e-9)) if similarity < 1 else math.inf

    def similar(self, text: str) -> tuple[str, float] | None:
        """Return the first near-identical text seen before and its similarity, or remember this."""
        if text.count(" ") < self._few_words:
            earlier = self._short.setdefault(" ".join(words(text)), text)
            return None if earlier is text else (earlier, 1.0)
        found = shingles(text, self._size)
        # 1e-9 guards against rounding: (1 - 0.9) * 10 is slightly less than 1.
        differing = math.floor((1 - self._similarity) * len(found) + 1e-9)
        prefix = sorted(found)[: differing + 1]
        for number in sorted({number for part in prefix for number in self._by_prefix[part]}):
            earlier, other = self._long[number]
            similarity = jaccard(found, other)
            if similarity >= self._similarity:
                return earlier, similarity
        for part in prefix:
            self._by_prefix[part].append(len(self._long))
        self._long.append((text, found))
        return None


_DEEPEST = 6
# A heading dropped for one of these reasons is not a record, but still heads a section.
_OPEN = (None, "too_short", "too_long", "language", "duplicate")
# Blocks dropped for one of these reasons are not what a heading heads.
_NO_TEXT = ("too_short", "call_to_action", "navigation_item", "notice")
_ROWS = (kinds.ROW, kinds.COLUMNS)
# How much of another block a detail quotes.
_QUOTED_CHARS = 40


def decide_blocks(
    page: WalkedPage, options: SegmentOptions, *, declared: str | None
) -> list[BlockDecision]:
    """Decide about every block: structure, section rules, length, language, duplicates, headings.

    The order matters: a block dropped by one step is not seen by the later ones.
    """
    decisions = [BlockDecision(block, order) for order, block in enumerate(page.blocks)]
    drop_boilerplate(page, decisions, options.boilerplate)
    # Before the length bounds: a table's rows may be short, the table is not.
    if options.tables == "structure":
        merge_tables(decisions)
    apply_sections(decisions, options.sections)
    join_item_parts(decisions, options)
    drop_by_length(decisions, options)
    drop_by_language(decisions, options, declared=declared)
    # Before duplicates: a heading that is context does not make the item of that name a repetition.
    if options.headings == "attach":
        attach_headings(decisions)
    drop_repeated(decisions, options)
    return decisions


def join_item_parts(decisions: Sequence[BlockDecision], options: SegmentOptions) -> None:
    """Join neighbouring parts of one list item of which one is too short to be a record.

    Directories write a name, a title and a room in three elements of one item.
    """
    last: BlockDecision | None = None
    for decision in iter_kept(decisions):
        if last is not None and _are_parts(last, decision, options):
            last.block.text = join_cells((last.block.text, decision.block.text))
            last.block.link_chars += decision.block.link_chars
            decision.drop(ATTACHED, "joined to the part before it")
        else:
            last = decision


def _are_parts(first: BlockDecision, second: BlockDecision, options: SegmentOptions) -> bool:
    left, right = first.block, second.block
    if left.hints is not right.hints or left.kind != kinds.ITEM or right.kind != kinds.ITEM:
        return False
    sizes = len(left.text), len(right.text)
    return min(sizes) < options.min_chars and sum(sizes) < options.max_chars


def drop_by_length(decisions: Sequence[BlockDecision], options: SegmentOptions) -> None:
    """Drop blocks that are too short or too long, unless their section or text is whitelisted."""
    for decision in iter_kept(decisions):
        size = len(decision.block.text)
        if options.min_chars <= size <= options.max_chars or _is_whitelisted(decision, options):
            continue
        if size < options.min_chars:
            decision.drop("too_short", f"{size} characters, at least {options.min_chars}")
        else:
            decision.drop("too_long", f"{size} characters, at most {options.max_chars}")


def drop_by_language(
    decisions: Sequence[BlockDecision], options: SegmentOptions, *, declared: str | None
) -> None:
    """Drop blocks in another language than the target."""
    detect_languages(
        decisions, sure=options.min_probability, target=options.language, declared=declared
    )
    for decision in iter_kept(decisions):
        found = decision.language
        if found and found.code not in (None, options.language):
            sure = "" if found.probability is None else f", probability {found.probability:.2f}"
            if found.target_probability is not None:
                sure += f", P({options.language}) {found.target_probability:.4f}"
            decision.drop("language", f"{found.code} by the {found.source}{sure}")


def drop_repeated(decisions: Sequence[BlockDecision], options: SegmentOptions) -> None:
    """Drop near-duplicates of earlier blocks of the page."""
    seen = SeenTexts(similarity=options.similarity, shingle_words=options.shingle_words)
    for decision in iter_kept(decisions):
        if found := seen.similar(decision.block.text):
            numbers = f"similarity {found[1]:.2f}, at least {options.similarity}"
            decision.drop("duplicate", f"{numbers}, to {found[0][:_QUOTED_CHARS]!r}")


def _is_whitelisted(decision: BlockDecision, options: SegmentOptions) -> bool:
    pattern = _whitelist(options.whitelist)
    return bool(
        pattern and (pattern.search(decision.block.text) or pattern.search(decision.section or ""))
    )


@lru_cache(maxsize=32)
def _whitelist(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None


def attach_headings(decisions: Sequence[BlockDecision]) -> None:
    """Make every heading and row of column names the context of the blocks below it.

    A heading without text below it, or with too short text only, stays a block of its own;
    otherwise its text would be lost. A heading whose text was dropped for another reason is
    attached too.
    """
    for decision, has_text in _headings(decisions):
        if has_text:
            decision.drop(ATTACHED, "")
    for decision in decisions:
        if decision.is_kept and decision.block.kind == kinds.COLUMNS:
            decision.reason = ATTACHED


def _headings(decisions: Sequence[BlockDecision]) -> Iterator[tuple[BlockDecision, bool]]:
    """Yield the headings of sections, last first, and whether each section has any text."""
    has_text = [False] * (_DEEPEST + 1)
    for decision in reversed(decisions):
        level = decision.block.level
        if level and decision.reason in _OPEN:
            yield decision, has_text[level]
            has_text[level:] = [False] * (_DEEPEST + 1 - level)
        elif not level and decision.section is not None and decision.reason not in _NO_TEXT:
            has_text = [True] * (_DEEPEST + 1)


def merge_tables(decisions: Sequence[BlockDecision]) -> None:
    """Replace the rows of every table by one block, one line per row, in its first kept row."""
    rows = [decision for decision in decisions if decision.is_kept and decision.block.kind in _ROWS]
    for _, group in groupby(rows, key=lambda decision: decision.block.hints["table"]):
        first, *rest = group
        first.block.text = "\n".join(f"| {row.block.text} |" for row in (first, *rest))
        first.block.link_chars += sum(row.block.link_chars for row in rest)
        first.block.kind = kinds.TABLE
        for row in rest:
            row.reason = ATTACHED
