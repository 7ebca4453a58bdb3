"""What an element says about itself: a structural zone, or a common word in its class or id."""

import re
from collections.abc import Sequence
from functools import lru_cache

_ZONE_TAGS = {
    "nav": "navigation",
    "header": "header",
    "footer": "footer",
    "aside": "aside",
    "dialog": "dialog",
    "button": "control",
    "label": "control",
    "fieldset": "control",
    "form": "control",
}
_ZONE_ROLES = {
    "navigation": "navigation",
    "menu": "navigation",
    "menubar": "navigation",
    "menuitem": "navigation",
    "banner": "header",
    "contentinfo": "footer",
    "complementary": "aside",
    "dialog": "dialog",
    "alertdialog": "dialog",
    "search": "control",
}
# Words that page builders everywhere put into class and id; no proof by themselves.
_WORDS = {
    "navigation": "nav navbar navigation menu menus submenu megamenu breadcrumb breadcrumbs crumbs "
    "pager toolbar skip offcanvas drawer dropdown toc",
    "footer": "footer copyright legal colophon",
    "consent": "cookie cookies consent gdpr onetrust",
    "dialog": "modal popup dialog overlay lightbox",
    "account": "login signin signup account cart minicart basket",
    "subscribe": "newsletter mailinglist",
    "share": "share sharing social",
    "related": "related recommended recommendations",
    "control": "filter filters facet facets sort",
    "feedback": "feedback comment comments",
    "advertisement": "ads advert advertisement sponsor sponsored sponsors",
    "screen_reader": "sr-only visually-hidden visuallyhidden screen-reader-text",
    "aside": "sidebar",
    "tags": "tags",
}
_MARKS = {word: mark for mark, words in _WORDS.items() for word in words.split()}
_NAMED = frozenset(_MARKS)
_PHRASES = tuple(word for word in _MARKS if "-" in word)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BETWEEN_WORDS = {code: " " for code in range(128) if not chr(code).isalpha()}
# Tags that say something about what is below them.
LANDMARKS = frozenset((*_ZONE_TAGS, "main"))

# Inside these the same tag means something else: the title of an article, an accordion's heading.
_HEADS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "dt"))
_EXEMPT = {
    "header": frozenset(("main", "article", "section")),
    "footer": frozenset(("article", "section", "blockquote")),
    "button": _HEADS,
    "label": _HEADS,
}


def zone_of(tag: str, role: str | None, path: Sequence[str]) -> str | None:
    """Return the boilerplate zone that an element below this path opens, if any."""
    if tag in _EXEMPT and not _EXEMPT[tag].isdisjoint(path):
        return None
    return _ZONE_TAGS.get(tag) or _ZONE_ROLES.get(role or "")


@lru_cache(maxsize=65_536)
def mark_of(names: str) -> str | None:
    """Return the kind of widget that a class or id speaks of, if any."""
    if not names.islower():
        names = _CAMEL.sub("-", names).lower()
    found = names.translate(_BETWEEN_WORDS).split()
    if not _NAMED.isdisjoint(found):
        return next(_MARKS[word] for word in found if word in _MARKS)
    names = names.replace("_", "-")
    for phrase in _PHRASES:
        if phrase in names:
            return _MARKS[phrase]
    return None
