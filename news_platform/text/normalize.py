"""Clean, normalize, compare, count and hash texts, and find the notices of paywalls in them."""

import hashlib
import re
import unicodedata
from collections.abc import Set
from typing import Any

# Line breaks stay: they stand between texts.
_NOT_WORD = re.compile(r"(?:[^\w\n]|_)+")
_NOT_WORD_ASCII = bytes(code for code in range(128) if not chr(code).isalnum() and code != 10)
# Soft hyphens and zero-width characters only mark where a line may break.
_INVISIBLE_CHARACTERS = "\u00ad\u200b\u2060\ufeff"
_INVISIBLE = re.compile(f"[{_INVISIBLE_CHARACTERS}]")
# What UTF-8 (lone surrogates), PostgreSQL (NUL) or XML (other controls) cannot hold. Tabs and line
# breaks stay; the controls that Python counts as spaces still separate words.
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSAFE_SPACES = frozenset("\x0b\x0c\x1c\x1d\x1e\x1f\x85")
# The bytes of UTF-8 that are safe whatever follows: deleting these takes a tenth of searching the
# text, and less than deleting the others, since nearly nothing is left to copy.
_PLAIN_BYTES = bytes({*range(0x20, 0x100), *b"\t\n\r"} - {0x7F})
_C1_CONTROL = re.compile(rb"\xc2[\x80-\x9f]")
_C1_LEAD = b"\xc2"
# Most pages have few characters with this lead byte, such as a copyright sign: to find the byte is
# ten times as fast as the expression. Pages with more of them are searched by the expression.
_FEW_LEADS = 40


def scrub_text(text: str) -> str:
    """Return foreign text that every file and database can store.

    Lone surrogates become U+FFFD; NUL and other control characters are removed, or become a space.
    """
    # A short text in print, as nearly all are, needs no search.
    if text.isascii() and text.isprintable():
        return text
    try:
        return text if is_safe_utf8(text.encode()) else _UNSAFE.sub(_safe, text)
    except UnicodeEncodeError:  # a lone surrogate
        return _UNSAFE.sub(_safe, text)


def is_safe_utf8(utf8: bytes) -> bool:
    """Return whether `scrub_text` leaves a text as it is, given its bytes."""
    return not utf8.translate(None, _PLAIN_BYTES) and not _has_c1_control(utf8)


def _has_c1_control(utf8: bytes) -> bool:
    at = utf8.find(_C1_LEAD)
    for _ in range(_FEW_LEADS):
        if at < 0:
            return False
        # In UTF-8 a byte from 0x80 to 0xBF follows this one; below 0xA0 they are a control.
        if utf8[at + 1] < 0xA0:
            return True
        at = utf8.find(_C1_LEAD, at + 2)
    return at >= 0 and _C1_CONTROL.search(utf8, at) is not None


def scrub_json(value: Any) -> Any:
    """Return a parsed JSON value with its texts scrubbed: escapes spell any character."""
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, list):
        return [scrub_json(part) for part in value]
    if isinstance(value, dict):
        return {scrub_text(key): scrub_json(part) for key, part in value.items()}
    return value


def _safe(found: re.Match[str]) -> str:
    character = found[0]
    if character >= "\ud800":
        return "\ufffd"
    return " " if character in _UNSAFE_SPACES else ""


def normalize_text(text: str) -> str:
    """Return the text after NFKC and casefolding, with single spaces between its words."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_hash(text: str) -> str:
    """Return the SHA-256 of the normalized text in hex; case, width and spacing do not matter."""
    return hashlib.sha256(normalize_text(text).encode("utf-8", "replace")).hexdigest()


# Below this width a text is a teaser, a notice or a placeholder, which many articles share.
_FEW_WIDTH = 250
# Up to this width it may still be one of them; only equal titles show that it is not.
_SOME_WIDTH = 1_000


def unique_text_hash(text: str, *, title: str, is_paywalled: bool | None) -> str | None:
    """Return a hash that only copies of one article share; None if the text cannot show it."""
    width = text_width(text, at_most=_SOME_WIDTH + 1)
    if is_paywalled or width < _FEW_WIDTH:
        return None
    return text_hash(text if width > _SOME_WIDTH else f"{normalize_letters(title)}\n{text}")


def text_width(text: str, *, at_most: int) -> int:
    """Return the number of characters, up to a limit; wide ones, as of Chinese, count double."""
    counted = text[:at_most]
    if counted.isascii():
        return len(counted)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in counted)
    return min(len(counted) + wide, at_most)


def normalize_letters(text: str) -> str:
    """Return only the letters and digits of the text, casefolded."""
    return normalize_lines(text).replace("\n", "")


def normalize_lines(text: str) -> str:
    """Return only the letters and digits of every line, casefolded."""
    # In bytes, what is not a letter is deleted fifty times as fast as by an expression.
    utf8 = text.encode("utf-8", "surrogatepass").translate(None, _NOT_WORD_ASCII)
    if utf8.isascii():
        return utf8.decode().lower()
    return _NOT_WORD.sub("", utf8.decode("utf-8", "surrogatepass")).casefold()


def normalize_spaces(text: str) -> str:
    """Return the text with single spaces and without invisible characters."""
    if not text.isascii() and any(map(text.__contains__, _INVISIBLE_CHARACTERS)):
        text = _INVISIBLE.sub("", text)
    return " ".join(text.split())


# Scripts without spaces (Thai, Lao, Khmer, Myanmar, kana, Han): every character is a word.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
_UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
_COUNTED_WORD = re.compile(r"\w+")
# Han and kana are written without spaces; a word has two characters on average.
_HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_LETTERS_PER_WORD = 2


def words(text: str) -> list[str]:
    """Return the words of the normalized text in order, without punctuation."""
    return _WORD.findall(normalize_text(text))


def shingles(text: str, size: int) -> frozenset[str]:
    """Return every run of `size` words; a shorter text gives one run, an empty text none."""
    found = words(text)
    if len(found) <= size:
        return frozenset([" ".join(found)] if found else [])
    return frozenset(map(" ".join, zip(*(found[start:] for start in range(size)), strict=False)))


def jaccard(left: Set[str], right: Set[str]) -> float:
    """Return the share of common members, from 0 to 1; 0 for two empty sets."""
    common = len(left & right)
    return common / (len(left) + len(right) - common) if common else 0.0


# Shorter words are articles, pronouns and prepositions in most languages.
_LONG_WORD = 4


def title_overlap(left: str, right: str) -> float:
    """Return the share of the shorter title's words that the other one has, too, from 0 to 1."""
    first, second = _telling_words(left), _telling_words(right)
    fewer = min(len(first), len(second))
    return len(first & second) / fewer if fewer else 0.0


def _telling_words(text: str) -> set[str]:
    found = words(text)
    long = {word for word in found if len(word) >= _LONG_WORD or _UNSPACED_LETTER.match(word)}
    return long or set(found)


def count_words(text: str) -> int:
    """Return the number of words; Chinese and Japanese count half their characters."""
    if text.isascii():
        return len(_COUNTED_WORD.findall(text))
    unspaced = len(_HAN_OR_KANA.findall(text))
    others = _HAN_OR_KANA.sub(" ", text) if unspaced else text
    return len(_COUNTED_WORD.findall(others)) + unspaced // _LETTERS_PER_WORD


def cut_at_word_end(text: str, limit: int) -> str:
    """Return at most `limit` characters, cut at the end of a word where there is one."""
    if len(text) <= limit:
        return text
    # One character more shows whether a word ends exactly at the limit.
    cut = text[: limit + 1].rsplit(maxsplit=1)[0] if not text[limit].isspace() else text[:limit]
    return cut.rstrip() if len(cut) <= limit else text[:limit]


# Only short lines: a sentence of an article about subscriptions must stay.
_MAX_CHARACTERS = 220
_METER = re.compile(
    r"subscri\w+ to (?:continue|keep|read|unlock|access)"
    r"|(?:sign|log) ?(?:in|up)(?: or (?:subscribe|register))? to (?:continue|keep) reading"
    r"|(?:register|create (?:a|an|your) (?:free )?account) to (?:continue|keep) reading"
    r"|to (?:continue|keep) reading(?:,| this| the| please|:|$)"
    r"|(?:this|the) (?:article|story|content) is (?:only |exclusively )?(?:for|available to)"
    r" (?:paying |premium |registered )?(?:subscribers|members)"
    r"|already a (?:subscriber|member)\?"
    r"|you(?:'|\u2019)?(?:ve| have) (?:reached|read|used)\b.{0,40}\bfree (?:article|stor)"
    r"|you have \w+ free articles? (?:left|remaining)"
    r"|want to (?:read|keep reading|continue reading)\b.{0,20}\?\s*subscribe"
    r"|unlock (?:this|the full) (?:article|story)"
    r"|weiterlesen mit\b|jetzt (?:weiterlesen|abonnieren)|mit .{0,20}abo (?:weiter)?lesen"
    r"|dieser (?:artikel|inhalt|beitrag) ist (?:nur|exklusiv) f\u00fcr"
    r"|sie haben bereits ein abo|diesen artikel weiterlesen"
    r"|(?:la suite|cet article) est r\u00e9serv\u00e9e? aux abonn\u00e9s|pour lire la suite"
    r"|contenido exclusivo para suscriptores|suscr\u00edbete para (?:seguir|continuar|leer)"
    r"|abbonati per (?:continuare|leggere)|contenuto riservato agli abbonati"
    r"|assine para (?:continuar|ler)|conte\u00fado exclusivo para assinantes",
    re.IGNORECASE,
)


# Every alternative of the pattern contains one of these, and few lines do: the pattern is slow.
_SIGNS = (
    "subscri", "reading", "members", "member?", "free ", "unlock", "lesen", "ein abo", "abonn",
    "exklusiv", "nur f\u00fcr", "la suite", "suscr", "assin", "abbona",
)  # fmt: skip


def is_meter_line(line: str) -> bool:
    """Return whether a line asks the reader to subscribe or to sign in for the rest of a text."""
    if len(line) > _MAX_CHARACTERS:
        return False
    lowered = line.lower()
    return any(sign in lowered for sign in _SIGNS) and _METER.search(line) is not None


def without_meter_lines(text: str) -> tuple[str, bool]:
    """Return the text without such lines, and whether it had any."""
    lines = text.split("\n")
    kept = [line for line in lines if not is_meter_line(line)]
    if len(kept) == len(lines):
        return text, False
    return "\n".join(kept).strip(), True
