"""What an element says about itself: a structural zone, or a common word in its class or id."""

import re
from functools import lru_cache

from lxml import etree

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
_EXEMPT = {
    "header": ("main", "article", "section"),
    "footer": ("article", "section", "blockquote"),
    "button": ("h1", "h2", "h3", "h4", "h5", "h6", "dt"),
    "label": ("h1", "h2", "h3", "h4", "h5", "h6", "dt"),
}


def zone_of(element: etree._Element, tag: str) -> str | None:
    """Return the boilerplate zone an element opens by its tag or role, if any."""
    if tag in _EXEMPT and any(True for _ in element.iterancestors(*_EXEMPT[tag])):
        return None
    return _ZONE_TAGS.get(tag) or _ZONE_ROLES.get(element.get("role", ""))


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
