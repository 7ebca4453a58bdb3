"""Explain which takedown requests cover a page or a domain, and what became of them."""

from collections.abc import Callable, Iterator
from datetime import datetime

from news_platform.datasets.evidence import Evidence
from news_platform.datasets.takedowns import request_path
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.requests import read_aliases, read_states

ROOM = "takedowns"


def explain_page(store: ObjectStore, url: str, *, now: datetime) -> Iterator[Evidence]:
    """Yield the requests that cover a page, given by its canonical URL."""
    yield from _covering(store, lambda takedowns: takedowns.covers(url), now=now)


def explain_domain(store: ObjectStore, domain: str, *, now: datetime) -> Iterator[Evidence]:
    """Yield the requests that cover a whole domain."""
    yield from _covering(store, lambda takedowns: takedowns.covers_domain(domain), now=now)


def _covering(
    store: ObjectStore, covers: Callable[[Takedowns], bool], *, now: datetime
) -> Iterator[Evidence]:
    states = read_states(store)
    aliases = read_aliases(store) if states else []
    for one in states:
        request = one.request
        if not covers(Takedowns.of([request], aliases=aliases)):
            continue
        status = one.status(now)
        is_over = status in ("withdrawn", "expired")
        yield Evidence(
            ROOM,
            status.replace(" ", "_") if is_over else "taken_down",
            f"The takedown {request.id} covers it ({status}): {request.reason}.",
            at=request.requested_at,
            source=request_path(request.id),
            details={"scope": request.scope, "kind": request.kind, "status": status},
        )
