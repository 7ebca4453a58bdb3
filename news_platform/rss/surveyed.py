"""What the domain survey knows about a host's robots.txt, read from where the survey stores it."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from pydantic import ValidationError

from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    PROD_FOLDER,
    ROBOTS_FILE,
    SUCCESS_FILE,
    DomainMetadata,
    RobotsFacts,
    sanitized_domain,
)
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.web.robots import Robots
from news_platform.web.urls import registrable_domain

# Older surveys may speak of another site; the worker then asks the site itself.
_MAX_AGE = timedelta(days=30)
# Every batch costs a look into storage for each new domain.
_MAX_BATCHES = 8


class SurveyedRobots:
    """Rules by host, from the newest batches that finished the host's domain; None if unknown."""

    def __init__(self, store: ObjectStore, *, now: datetime) -> None:
        self._store = store
        self._oldest = now - _MAX_AGE
        self._batches: list[str] | None = None
        self._known: dict[str, Robots | None] = {}

    def __call__(self, host: str) -> Robots | None:
        """Return the rules that the survey stored for a host, or None."""
        if host not in self._known:
            self._known[host] = self._find(host)
        return self._known[host]

    def _find(self, host: str) -> Robots | None:
        for folder in self._folders(registrable_domain(host)):
            metadata = self._read(folder)
            if metadata is not None and metadata.collected_at >= self._oldest:
                return self._rules(folder, metadata, host)
        return None

    def _folders(self, domain: str) -> Iterator[str]:
        if self._batches is None:
            self._batches = _newest_batches(self._store)
        name = sanitized_domain(domain)
        for batch in self._batches:
            folder = f"{batch}/{name}"
            if self._store.exists(f"{folder}/{SUCCESS_FILE}"):
                yield folder

    def _read(self, folder: str) -> DomainMetadata | None:
        try:
            return DomainMetadata.model_validate_json(self._store.read(f"{folder}/{METADATA_FILE}"))
        except (NotFound, ValidationError):
            return None

    def _rules(self, folder: str, metadata: DomainMetadata, host: str) -> Robots | None:
        if metadata.robots.host == host:
            return self._judge(metadata.robots, f"{folder}/{ROBOTS_FILE}")
        for facts in metadata.other_hosts:
            if facts.host == host:
                return self._judge(facts, f"{folder}/robots.{sanitized_domain(host)}.txt")
        return None

    def _judge(self, facts: RobotsFacts, path: str) -> Robots | None:
        if facts.status_code is None or facts.status_code == 429 or facts.status_code >= 500:
            return None
        try:
            body = self._store.read(path) if facts.exists else b""
        except NotFound:
            return None
        return Robots.of_answer(facts.status_code, body)


def _newest_batches(store: ObjectStore) -> list[str]:
    """Return the folders of the newest batches, newest day first."""
    folders = [PROD_FOLDER]
    for _ in ("country", "category", "date"):
        folders = [f"{above}/{name}" for above in folders for name in _names(store, above)]
    return sorted(folders, key=lambda folder: folder.rpartition("date=")[2], reverse=True)[
        :_MAX_BATCHES
    ]


def _names(store: ObjectStore, folder: str) -> list[str]:
    return [path.rstrip("/").rpartition("/")[2] for path in store.list_folders(folder)]
