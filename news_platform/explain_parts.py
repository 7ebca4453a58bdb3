"""Join what every feature knows about a URL, a domain or a feed, in the order of the pipeline."""

from collections.abc import Iterator

import sqlalchemy as sa

from news_platform.datasets.evidence import Evidence, Explanation, SubjectKind
from news_platform.errors import InputError
from news_platform.resources import Resources
from news_platform.rss import explain as articles
from news_platform.storage.sql.engine import has_table, ledger_url, open_engine
from news_platform.takedowns.same_page import PageAddress
from news_platform.web.urls import canonical_url, has_registrable_domain, plain_host


def explain_subject(resources: Resources, subject: str) -> Explanation:
    """Return all that is known about a URL, a domain or a feed, in any spelling.

    Raise InputError for text that is none of them.
    """
    engine = _existing_ledger(resources)
    kind = _kind(engine, subject)
    page = PageAddress.of(subject)
    evidence = tuple(_evidence(engine, page))
    known = any(one.is_known for one in evidence)
    name = plain_host(subject) if kind == "domain" else page.url
    return Explanation(name, kind, evidence, known)


def _evidence(engine: sa.Engine | None, page: PageAddress) -> Iterator[Evidence]:
    if engine is not None:
        yield from articles.explain_article(engine, page)


def _kind(engine: sa.Engine | None, subject: str) -> SubjectKind:
    text = subject.strip()
    if "/" not in text and has_registrable_domain(text):
        return "domain"
    canonical = canonical_url(text)
    if not canonical.startswith(("http://", "https://")):
        raise InputError(
            f"{subject[:200]!r} is neither a URL nor a domain: expected an address such as "
            "https://example.org/page, a domain such as example.org, or the address of a feed",
            thing=subject[:200],
        )
    return "feed" if engine is not None and articles.is_feed(engine, canonical) else "url"


def _existing_ledger(resources: Resources) -> sa.Engine | None:
    """Return the ledger, or None for a root that has none: to explain creates nothing."""
    url = ledger_url(resources.data_root.store.url, resources.settings.ledger_url)
    probe = open_engine(url)
    try:
        is_there = has_table(probe, "raw")
    finally:
        probe.dispose()
    return resources.ledger.engine if is_there else None
