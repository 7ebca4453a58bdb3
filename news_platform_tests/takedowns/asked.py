"""Requests for tests, in few words."""

from datetime import UTC, datetime

from news_platform.composition.takedown_parts import apply_root
from news_platform.datasets.takedowns import TakedownKind, TakedownRequest
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.engines import DatasetEngine
from news_platform.storage.objects.interfaces import Body, ObjectInfo
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import ApplyReport, EnginePart
from news_platform.takedowns.requests import TakedownTerms, add_request, new_request
from news_platform.takedowns.rows import TakedownTarget

NOW = datetime(2025, 12, 1, 9, tzinfo=UTC)
TERMS = TakedownTerms("asked by the publisher")


def asked(kind: str, *values: str, terms: TakedownTerms = TERMS) -> TakedownRequest:
    """Return a request."""
    return new_request(TakedownKind(kind), values, terms=terms, now=NOW)


class AskedDuringBuild(ObjectStore):
    """A store in which a request comes right before the first write below a folder."""

    def __init__(self, store: ObjectStore, folder: str, kind: str, value: str) -> None:
        super().__init__(store._backend, store._prefix)
        self._folder = f"{folder}/"
        self._request: TakedownRequest | None = asked(kind, value)

    def put(self, path: str, body: Body) -> ObjectInfo:
        request, self._request = self._request, None
        if request is not None and path.startswith(self._folder):
            add_request(self, request)
        elif request is not None:
            self._request = request
        return super().put(path, body)


def ask(
    store: ObjectStore, kind: str, *values: str, terms: TakedownTerms = TERMS
) -> TakedownRequest:
    """Store a request and return it."""
    request = asked(kind, *values, terms=terms)
    add_request(store, request)
    return request


def target(kind: str, *values: str) -> TakedownTarget:
    """Return what engines look for by one request."""
    return TakedownTarget(Takedowns.of([asked(kind, *values)]))


def engine_part(engine: DatasetEngine) -> EnginePart:
    """Return the part of an engine alone, without what follows from it."""
    return EnginePart(lambda: engine, engine.dataset.name)


def served(
    store: ObjectStore, *, ledger_url: str | None = None, search_again: bool = False
) -> ApplyReport:
    """Serve all requests of a root in a folder; nothing may be left."""
    resources = Resources(Settings(root=store.url, ledger_url=ledger_url))
    try:
        report = apply_root(resources, search_again=search_again)
    finally:
        resources.ledger.close()
    assert report.left == {}
    return report
