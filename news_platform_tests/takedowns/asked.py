"""Requests for tests, in few words."""

from datetime import UTC, datetime

from news_platform.datasets.takedowns import TakedownKind, TakedownRequest
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.requests import TakedownTerms, add_request, new_request

NOW = datetime(2025, 12, 1, 9, tzinfo=UTC)
TERMS = TakedownTerms("asked by the publisher")


def asked(kind: str, *values: str, terms: TakedownTerms = TERMS) -> TakedownRequest:
    """Return a request."""
    return new_request(TakedownKind(kind), values, terms=terms, now=NOW)


def ask(
    store: ObjectStore, kind: str, *values: str, terms: TakedownTerms = TERMS
) -> TakedownRequest:
    """Store a request and return it."""
    request = asked(kind, *values, terms=terms)
    add_request(store, request)
    return request
