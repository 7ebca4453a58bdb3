"""What the labels of each system mean for our four purposes.

The meaning of a label is a table, not code: `docs/usage_signals.md` prints it with its sources.
A restriction is read leniently, a grant strictly: a label that does not clearly allow a use has no
entry for it.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, get_args

from news_platform.datasets.domain_metadata import UseStatement

Purpose = Literal["index", "search", "ai_input", "ai_train"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
Effect = Literal["allow", "refuse"]
System = Literal[
    "robots",
    "content_signal",
    "content_usage",
    "robots_tag",
    "robots_meta",
    "tdmrep",
    "rsl",
    "ai_txt",
    "trust_txt",
]

EVERYWHERE = "/"
"""The pattern of a statement about the whole host."""
HOME_PAGE = "/$"
"""The pattern of a header or meta element: it speaks about the page that carried it."""

MAX_RAW_CHARS = 500
"""A longer raw text is cut: the file itself is stored, or its digest is."""


def effect_of(statement: UseStatement, purpose: Purpose) -> Effect | None:
    """Return what a statement means for a purpose, or None if it says nothing about it."""
    key = (statement.system, statement.label, statement.value or "")
    return EFFECTS.get(key, _NOTHING).get(purpose)


def raw_text(text: str) -> str:
    """Return a raw text within the limit that statements keep."""
    return text if len(text) <= MAX_RAW_CHARS else f"{text[: MAX_RAW_CHARS - 1]}…"


_Rows = Iterable[tuple[tuple[str, str, str], Mapping[Purpose, Effect]]]
_NOTHING: Mapping[Purpose, Effect] = MappingProxyType({})


def _all(effect: Effect, *purposes: Purpose) -> dict[Purpose, Effect]:
    return dict.fromkeys(purposes, effect)


def _yes_no(system: System, label: str, yes: str, no: str, *purposes: Purpose) -> _Rows:
    yield (system, label, yes), _all("allow", *purposes)
    yield (system, label, no), _all("refuse", *purposes)


def _rows() -> _Rows:
    yield from _yes_no("content_signal", "search", "yes", "no", "index", "search")
    yield from _yes_no("content_signal", "ai-input", "yes", "no", "ai_input")
    yield from _yes_no("content_signal", "ai-train", "yes", "no", "ai_train")
    # `use` is a ceiling: what lies above it is refused. Transient input (`immediate`) is neither.
    yield (
        ("content_signal", "use", "immediate"),
        _all("refuse", "index", "search", "ai_train"),
    )
    yield (
        ("content_signal", "use", "reference"),
        {**_all("allow", "index", "search"), **_all("refuse", "ai_input", "ai_train")},
    )
    yield ("content_signal", "use", "full"), _all("allow", "ai_input")
    yield from _yes_no("content_usage", "search", "y", "n", "index", "search")
    yield from _yes_no("content_usage", "ai-use", "y", "n", "ai_input")
    yield from _yes_no("content_usage", "train-ai", "y", "n", "ai_train")
    for label, purposes in RSL_USES.items():
        yield from _yes_no("rsl", label, "permitted", "prohibited", *purposes)
        # A closed list that lacks a use does not license it; neither does one that must be paid.
        for value in ("not_listed", "payment"):
            yield ("rsl", label, value), _all("refuse", *purposes)
    # "Not reserved" (0) is not a grant outside the EU, so it has no entry.
    yield ("tdmrep", "tdm-reservation", "1"), _all("refuse", "ai_input", "ai_train")
    for system in ("robots_tag", "robots_meta"):
        for label in ("noindex", "none"):
            yield (system, label, "yes"), _all("refuse", "index", "search")
        yield (system, "nosnippet", "yes"), _all("refuse", "ai_input")
        for label in ("noai", "noimageai"):
            yield (system, label, "yes"), _all("refuse", "ai_input", "ai_train")
    yield ("ai_txt", "disallow", "yes"), _all("refuse", "ai_train")
    yield ("trust_txt", "datatrainingallowed", "no"), _all("refuse", "ai_train")
    yield ("trust_txt", "datatrainingallowed", "yes"), _all("allow", "ai_train")


RSL_USES: Mapping[str, tuple[Purpose, ...]] = MappingProxyType(
    {
        "search": ("index", "search"),
        "ai-index": ("ai_input",),
        "ai-input": ("ai_input",),
        "ai-train": ("ai_train",),
        "ai-all": ("ai_input", "ai_train"),
        "all": PURPOSES,
    }
)
"""The usage tokens of RSL 1.0 and the purposes that each of them covers."""

EFFECTS: Mapping[tuple[str, str, str], Mapping[Purpose, Effect]] = MappingProxyType(dict(_rows()))
"""What a label with a value means, by system, label and value."""
