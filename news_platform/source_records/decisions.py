"""Decide for every block of a page whether it is kept, or the reason why it is dropped."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import (
    ATTACHED,
    BlockDecision,
    WalkedPage,
    is_prose,
    iter_kept,
    join_cells,
    weighted_chars,
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
        merge_tables(decisions, options.max_chars)
    apply_sections(decisions, options.sections)
    join_parts(page, decisions, options)
    drop_by_length(decisions, options)
    drop_by_language(decisions, options, declared=declared)
    # Before duplicates: a heading that is context does not make the item of that name a repetition.
    if options.headings == "attach":
        attach_headings(decisions)
    drop_repeated(decisions, options)
    return decisions


def join_parts(
    page: WalkedPage, decisions: Sequence[BlockDecision], options: SegmentOptions
) -> None:
    """Join neighbouring parts of one list item or card of which one is too short to be a record.

    Directories write a name, a title and a room in three elements of one item; shops write a name
    and a price in the elements of one of many equal cards.
    """
    kept = list(iter_kept(decisions))
    short = [one for one in kept if not one.block.level and _is_short(one, options)]
    cards = find_cards(page, kept, short) if short else {}
    last: BlockDecision | None = None
    for decision in kept:
        if last is not None and (
            _are_parts(last, decision, cards, options) or _are_fields(page, last, decision, options)
        ):
            last.block.text = join_cells((last.block.text, decision.block.text))
            last.block.link_chars += decision.block.link_chars
            last.block.links += decision.block.links
            decision.drop(ATTACHED, "joined to the part before it")
        else:
            last = decision
    for heading, decision in pairwise(iter_kept(decisions)):
        # The only text of its card repeats the name of the card: "Rex | $20".
        is_in_card = cards.get(decision.order, -1) == cards.get(heading.order)
        if is_in_card and heading.block.level and _is_short(decision, options):
            decision.block.text = join_cells((heading.block.text, decision.block.text))


def _is_short(decision: BlockDecision, options: SegmentOptions) -> bool:
    return weighted_chars(decision.block.text) < options.min_chars


def _are_parts(
    first: BlockDecision,
    second: BlockDecision,
    cards: Mapping[int, int],
    options: SegmentOptions,
) -> bool:
    left, right = first.block, second.block
    is_item = left.hints is right.hints and left.kind == right.kind == kinds.ITEM
    # "Phone" and "555 0199": the definitions of a term follow it.
    is_item |= right.kind == kinds.DEFINITION and left.kind in (kinds.TERM, kinds.DEFINITION)
    is_card = cards.get(first.order, -1) == cards.get(second.order)
    # A name after a paragraph belongs to what follows.
    is_card &= right.kind != kinds.TERM and not is_prose(left)
    if not is_item and (not is_card or left.level or right.level):
        return False
    is_short = _is_short(first, options) or _is_short(second, options)
    return is_short and len(left.text) + len(right.text) < options.max_chars


# A name, or a text with a number: a room, a phone number, opening hours.
_FIELD = re.compile(r"(?:[^\W\d_a-z][\w.'’-]*)(?: [^\W\d_a-z][\w.'’-]*){1,3}|.*\d.*")


def _are_fields(
    page: WalkedPage, first: BlockDecision, second: BlockDecision, options: SegmentOptions
) -> bool:
    """Return whether two texts stand side by side, and a short one of them states a fact."""
    left, right = first.block, second.block
    is_beside = (
        left.kind == right.kind == kinds.PARAGRAPH
        and left.element != right.element
        and page.parents[left.element] == page.parents[right.element]
        and page.tags[left.element] == page.tags[right.element]
        and not (left.link_chars or right.link_chars)
    )
    short = [one.block.text for one in (first, second) if _is_short(one, options)]
    return is_beside and bool(short) and all(map(_FIELD.fullmatch, short))


# A card has this many texts and characters at most, and this many cards stand side by side.
_CARD_TEXTS = 12
_CARD_CHARS = 400
_CARDS = 3
# A text stands at most this deep in its card.
_CARD_DEPTH = 5


def find_cards(
    page: WalkedPage, kept: Sequence[BlockDecision], short: Sequence[BlockDecision]
) -> dict[int, int]:
    """Return the card of every short text and of the texts beside it, by their order.

    A card is the largest element around a short text that holds few texts and stands beside other
    elements with the same tag.
    """
    inside: dict[int, list[BlockDecision]] = defaultdict(list)
    for decision in kept:
        for element in _ancestors(page, decision):
            inside[element].append(decision)
    alike = Counter((page.parents[element], page.tags[element]) for element in inside)
    cards: dict[int, int] = {}
    for decision in short:
        card = None
        for element in _ancestors(page, decision):
            texts = inside[element]
            if len(texts) > _CARD_TEXTS or _card_chars(texts) > _CARD_CHARS:
                break
            if len(texts) > 1 and alike[page.parents[element], page.tags[element]] >= _CARDS:
                card = element
        if card is not None:
            cards |= {one.order: card for one in inside[card]}
    return cards


def _ancestors(page: WalkedPage, decision: BlockDecision) -> Iterator[int]:
    """Yield the numbers of the nearest elements around a block, inner before outer."""
    element, parents = decision.block.element, page.parents
    for _ in range(_CARD_DEPTH):
        if not element:
            return
        yield element
        element = parents[element]


def _card_chars(texts: Sequence[BlockDecision]) -> int:
    return sum(len(decision.block.text) for decision in texts)


def drop_by_length(decisions: Sequence[BlockDecision], options: SegmentOptions) -> None:
    """Drop blocks that are too short or too long, unless their section or text is whitelisted."""
    for decision in iter_kept(decisions):
        text = decision.block.text
        least = weighted_chars(text)
        is_within = options.min_chars <= least and len(text) <= options.max_chars
        if is_within or _is_whitelisted(decision, options):
            continue
        if least < options.min_chars:
            decision.drop("too_short", f"{least} characters, at least {options.min_chars}")
        else:
            decision.drop("too_long", f"{len(text)} characters, at most {options.max_chars}")


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
    first: dict[str, BlockDecision] = {}
    for decision in iter_kept(decisions):
        if found := seen.similar(decision.block.text):
            numbers = f"similarity {found[1]:.2f}, at least {options.similarity}"
            decision.drop("duplicate", f"{numbers}, to {found[0][:_QUOTED_CHARS]!r}")
            kept = first[found[0]]
            if decision.section and decision.section not in (kept.section, *kept.also_in):
                kept.also_in.append(decision.section)
        else:
            first[decision.block.text] = decision


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


def merge_tables(decisions: Sequence[BlockDecision], max_chars: int) -> None:
    """Replace the rows of every table by one block, one line per row, in its first kept row.

    A table longer than `max_chars` is split between rows, and every part repeats the column names.
    """
    rows = [decision for decision in decisions if decision.is_kept and decision.block.kind in _ROWS]
    for _, group in groupby(rows, key=lambda decision: decision.block.hints["table"]):
        table = list(group)
        names = f"| {table[0].block.text} |" if table[0].block.kind == kinds.COLUMNS else ""
        part: list[BlockDecision] = []
        size = 0
        for row in table:
            line = len(row.block.text) + 5
            if part and size + line > max_chars:
                _merge_rows(part, names if part[0] is not table[0] else "")
                part, size = [], len(names)
            part.append(row)
            size += line
        _merge_rows(part, names if part[0] is not table[0] else "")


def _merge_rows(rows: Sequence[BlockDecision], names: str) -> None:
    """Replace rows by one block, below the column names unless the first row holds them."""
    first, *rest = rows
    lines = (f"| {row.block.text} |" for row in rows)
    first.block.text = "\n".join(filter(None, (names, *lines)))
    first.block.link_chars += sum(row.block.link_chars for row in rest)
    first.block.kind = kinds.TABLE
    for row in rest:
        row.reason = ATTACHED
