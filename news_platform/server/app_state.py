"""What all requests share: one root, opened once, and what was read from it."""

import time
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import sqlalchemy as sa

from news_platform.api import NewsData
from news_platform.errors import InputError
from news_platform.resources import Resources
from news_platform.server.documents import StatusDocument
from news_platform.server.guards import ServerOptions
from news_platform.server.versions import (
    TAKEDOWNS,
    ArticleRows,
    ArticleTables,
    DataVersion,
    Refreshed,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns

# DuckDB and the rest of SQL are loaded by the process that needs them.
if TYPE_CHECKING:
    from news_platform.server.answers import SqlProcesses

_WARM_UP_AFTER_SECONDS = 10
_LEDGER_SECONDS = 5
# Planning what every sensor would do takes a second or more on a large root.
_STATUS_SECONDS = 15.0


class NothingHere(InputError):
    """There is no such article, domain or page."""


class TakenDown(InputError):
    """The article or domain is taken down."""


class AppState:
    """One root, opened for reading, and what all requests read from it.

    It is used by many threads.
    """

    def __init__(self, resources: Resources, options: ServerOptions) -> None:
        self.resources, self.options = resources, options
        self.news = NewsData(resources.settings)
        self.version = DataVersion(self.store)
        self.tables = ArticleTables(self.store, self.version)
        self.rows = ArticleRows(self.store, self.version)
        self.status = Refreshed(self._read_status, rest_seconds=lambda _: _STATUS_SECONDS)
        self._no_ledger_until = 0.0

    @cached_property
    def store(self) -> ObjectStore:
        """Return the store of the root."""
        return self.resources.data_root.store

    @cached_property
    def sql(self) -> "SqlProcesses":
        """Return what answers SQL; its processes start with the first query."""
        from news_platform.server.answers import SqlProcesses

        return SqlProcesses(self.resources.settings)

    def warm_up(self) -> None:
        """Load the modules that only some answers need, and find the status, a little later."""
        # First the pages: what starts beside the server needs the processor, too.
        time.sleep(_WARM_UP_AFTER_SECONDS)
        # The parts of all features, which the first `explain` loads.
        import news_platform.composition.explain  # noqa: F401  # only for its effect

        self.status.current()

    @property
    def takedowns(self) -> Takedowns:
        """Return what must not be shown."""
        # Requests expire by themselves: they are read again every minute.
        name = f"takedowns {datetime.now(UTC):%H:%M}"
        return self.version.kept(name, self._read_takedowns, TAKEDOWNS)

    @property
    def ledger(self) -> sa.Engine | None:
        """Return the SQL ledger; a root without one is checked again some seconds later."""
        if self._no_ledger_until > time.monotonic():
            return None
        engine = self.news.known_ledger()
        if engine is None:
            self._no_ledger_until = time.monotonic() + _LEDGER_SECONDS
        return engine

    def _read_takedowns(self) -> Takedowns:
        # As in the index: what must not be stored is not shown.
        return Takedowns.read(self.store, now=datetime.now(UTC), use="removal")

    def _read_status(self) -> StatusDocument:
        # Loads Dagster and the whole graph, which no other page needs.
        from news_platform.defs.graph import BUILD_ORDER
        from news_platform.defs.status import platform_status

        document = platform_status(BUILD_ORDER, self.resources).document()
        # StatusDocument leaves out where the root lies: other machines need not know.
        return StatusDocument.model_validate(document)
