"""The options of the segmentation, with the specification's defaults."""

import re
from dataclasses import dataclass
from typing import Literal

from news_platform.errors import ConfigError

HEADINGS = ("attach", "records")
TABLES = ("rows", "structure")


@dataclass(frozen=True, slots=True)
class BoilerplateRules:
    """Thresholds of the boilerplate rules; shares refer to the page's text outside links.

    A navigation, header, footer or aside with more than `zone_share` of the text is content in the
    wrong element, and an element whose class suggests a widget is none if it holds more than
    `widget_share`. <main> counts as the content if it holds more than `main_share` of the text
    outside all zones. Texts shorter than `lead_chars` characters above the first <h1> are dropped
    if there are at most `lead_blocks` of them. A paragraph is dropped if it consists of links (by
    `link_density`) with at most `link_words` words, or is a row of links.
    """

    zone_share: float = 0.7
    widget_share: float = 0.4
    main_share: float = 0.4
    lead_chars: int = 120
    lead_blocks: int = 30
    link_density: float = 0.8
    link_words: int = 2


@dataclass(frozen=True, slots=True)
class SectionRules:
    """Words and phrases of blocks that look like content but are navigation; all in lower case.

    `navigation_items` match whole blocks. `call_verbs` start a call to action of at most
    `call_words` words. `notice_openings` are regular expressions for the start of a notice,
    `notice_phrases` are found anywhere in one; a notice has at most `notice_chars` characters.
    `sections` are regular expressions for the start of a heading whose whole section is dropped.
    """

    navigation_items: tuple[str, ...] = (
        "about", "about us", "academic calendar", "admissions", "admissions & aid", "alumni",
        "apply", "apply now", "athletics", "blog", "calendar", "campus life", "campus map",
        "careers", "contact", "contact us", "current students", "directory", "donate", "events",
        "faculty & staff", "faq", "faqs", "financial aid", "future students", "give", "giving",
        "help", "home", "jobs", "library", "log in", "login", "maps & directions", "media", "menu",
        "my account", "news", "news & events", "newsroom", "overview", "parents", "press",
        "prospective students", "register", "search", "sign in", "site map", "sitemap",
        "student life", "support", "tuition & fees", "visit", "visit us",
    )  # fmt: skip
    call_words: int = 6
    call_verbs: tuple[str, ...] = (
        "apply", "book", "browse", "buy", "call", "chat", "check out", "claim", "click", "compare",
        "contact", "continue", "discover", "donate", "download", "email", "enrol", "enroll",
        "explore", "find", "follow", "get", "give", "go to", "inquire", "join", "learn", "load",
        "log in", "login", "make an?", "meet", "open", "order", "pay", "play", "read", "refer",
        "register", "request", "reserve", "return to", "save", "schedule", "search", "see", "send",
        "shop", "show", "sign in", "sign out", "sign up", "skip", "speak", "start", "submit",
        "subscribe", "take", "talk", "tell", "test", "try", "tweet", "unlock", "upgrade", "use",
        "view", "visit", "watch", "write",
    )  # fmt: skip
    notice_chars: int = 250
    notice_openings: tuple[str, ...] = (
        r"skip (to|navigation)", r"copyright", r"\(c\) ?(19|20)\d\d",
        r"last (modified|updated|reviewed)",
        r"page \d+ of \d+", r"edit (this )?page", r"powered by", r"share (this|on|via)",
        r"back to (top|all)", r"loading", r"(table of )?contents$",
        r"(on|in) this (page|article|section)$",
        r"(showing|displaying|viewing) \d+", r"\d+ (of|out of) \d+ (results|products|items)",
        r"(was|is|did) this (page |article |content |information )?(help|useful)",
        r"ready to\b", r"still have questions", r"(have|got) (a |any )?questions\?",
        r"need (more )?help\?",
    )  # fmt: skip
    notice_phrases: tuple[str, ...] = (
        "©", "all rights reserved", "privacy policy", "cookie policy", "terms of use",
        "terms of service", "terms and conditions", "terms & conditions", "use cookies",
        "uses cookies", "using cookies", "accept cookies", "accept all cookies", "your cookie",
        "already have an account", "forgot password", "forgot your password", "enable javascript",
        "requires javascript", "report a bug", "report an issue", "report a problem",
    )  # fmt: skip
    sections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """How a page is segmented.

    Blocks shorter than `min_chars` or longer than `max_chars` characters are dropped unless a
    regular expression of `whitelist` matches in their section or text. `headings` are the section
    of the blocks that follow ("attach"), or also records of their own ("records"). `tables` become
    one record per row ("rows"), or one record with all rows and columns ("structure").
    """

    language: str = "en"
    min_probability: float = 0.8
    min_chars: int = 12
    max_chars: int = 2000
    whitelist: tuple[str, ...] = ()
    similarity: float = 0.95
    shingle_words: int = 3
    headings: Literal["attach", "records"] = "attach"
    tables: Literal["rows", "structure"] = "rows"
    boilerplate: BoilerplateRules = BoilerplateRules()
    sections: SectionRules = SectionRules()

    def __post_init__(self) -> None:
        """Raise ConfigError for an unknown choice or an invalid regular expression."""
        for name, choices in (("headings", HEADINGS), ("tables", TABLES)):
            if getattr(self, name) not in choices:
                expected = f"expected one of {', '.join(choices)}"
                message = f"invalid {name} {getattr(self, name)!r}: {expected}"
                raise ConfigError(message, thing=name)
        for pattern in self.whitelist:
            try:
                re.compile(pattern)
            except re.error as error:
                message = f"invalid regular expression {pattern!r} in the whitelist: {error}"
                raise ConfigError(message, thing=pattern) from error
