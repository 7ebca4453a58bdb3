"""What a page states and shows in, whether its text is for subscribers out.

Pages state it in JSON-LD or meta elements; others show a wall, which is recognized by what it says.
The class `paywall` by itself says nothing: free articles of such sites have it too.
"""

import re
from collections.abc import Iterable

from news_platform.articles.meta_tags import MetaTags
from news_platform.html import jsonld
from news_platform.html.jsonld import JsonObject

_META = ("article:content_tier", "access", "content_tier", "article.content_tier")
_LOCKED_TIERS = frozenset(("locked", "metered", "paid", "premium", "subscriber", "no", "plus"))
_FALSE = frozenset(("false", "0", "no", "http://schema.org/false", "https://schema.org/false"))
_MAX_WALL = 200
_WALL = re.compile(
    r"subscribe (?:now )?to (?:continue|keep) reading"
    r"|(?:sign in|log in|register) to continue reading"
    r"|to (?:continue reading|read) (?:the rest of )?this (?:article|story),? (?:please )?"
    r"(?:subscribe|sign|log)"
    r"|(?:for|only to) subscribers only|subscriber.only (?:content|article|story)"
    r"|(?:nur|exklusiv) für abonnent|weiterlesen mit [\w-]*(?:plus|\+|abo)"
    r"|réservée? (?:à nos|aux) abonnés|(?:solo|exclusivo) para suscriptores"
    r"|riservato agli abbonati|tylko dla (?:prenumeratorów|subskrybentów)|alleen voor abonnees"
    r"|только для подписчиков",
    re.IGNORECASE,
)


def stated_paywall(article: JsonObject, meta: MetaTags) -> bool | None:
    """Return whether the page says that its text is for subscribers; None if it does not say."""
    parts = [part for part in jsonld.parts(article.get("hasPart")) if isinstance(part, dict)]
    stated = [thing.get("isAccessibleForFree") for thing in (article, *parts)]
    known = [str(free).strip().lower() in _FALSE for free in stated if free is not None]
    if known:
        return any(known)
    tier = meta.first(*_META).lower()
    return tier in _LOCKED_TIERS if tier else None


def shows_wall(texts: Iterable[str]) -> bool:
    """Return True if one of the page's short texts asks to subscribe for the rest."""
    return any(len(text) <= _MAX_WALL and _WALL.search(text) for text in texts)
