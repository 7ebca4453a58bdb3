"""What all requests share: one root, opened once, and what was read from it."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

import sqlalchemy as sa

from news_platform.api import NewsData
from news_platform.errors import InputError
from news_platform.resources import Resources
from news_platform.server.article_rows import ArticleRows
from news_platform.server.article_tables import ArticleTables
from news_platform.server.options import ServerOptions
from news_platform.server.status_view import StatusReader
from news_platform.server.versions import TAKEDOWNS, DataVersion
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns

_REMEMBERED = 64
_WARM_UP_AFTER_SECONDS = 10
_LEDGER_SECONDS = 5
_Value = TypeVar("_Value")


class NothingHere(InputError):
    """There is no such article, domain or page."""


class TakenDown(InputError):
    """The article or domain is taken down."""


class AppState:
    """One root, opened for reading, with values that are kept as long as its data stays the same.

    It is used by many threads.
    """

    def __init__(self, resources: Resources, options: ServerOptions) -> None:
        self.resources, self.options = resources, options
        self.news = NewsData(resources.settings)
        self.version = DataVersion(self.store)
        self.tables = ArticleTables(self.store, self.version)
        self.rows = ArticleRows(self.store, self.version)
        self.status = StatusReader(resources)
        self._kept: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self._keeping = threading.Lock()
        self._no_ledger_until = 0.0

    @cached_property
    def store(self) -> ObjectStore:
        """Return the store of the root."""
        return self.resources.data_root.store

    def warm_up(self) -> None:
        """Load the modules that only some answers need, and find the status, a little later."""
        # First the pages: what starts beside the server needs the processor, too.
        time.sleep(_WARM_UP_AFTER_SECONDS)
        # The parts of all features, which `explain` loads when first asked.
        import news_platform.composition.explain  # noqa: F401  # only for its effect

        self.status.current()

    @property
    def takedowns(self) -> Takedowns:
        """Return what must not be shown."""
        # Requests expire by themselves: they are read again every minute.
        name = f"takedowns {datetime.now(UTC):%H:%M}"
        return self.kept(name, self._read_takedowns, of=(TAKEDOWNS,))

    @property
    def ledger(self) -> sa.Engine | None:
        """Return the SQL ledger; a root that has none is asked again some seconds later."""
        if self._no_ledger_until > time.monotonic():
            return None
        engine = self.news.known_ledger()
        if engine is None:
            self._no_ledger_until = time.monotonic() + _LEDGER_SECONDS
        return engine

    def _read_takedowns(self) -> Takedowns:
        # As in the index: what must not be stored is not shown.
        return Takedowns.read(self.store, now=datetime.now(UTC), use="removal")

    def kept(self, name: str, read: Callable[[], _Value], *, of: Sequence[str] = ()) -> _Value:
        """Return a value that was read from this version of the data, or read it now.

        `of` are the only folders that the value depends on; without any, on all of them.
        """
        version = self.version.of(*of) if of else self.version.current()
        with self._keeping:
            found = self._kept.get(name)
            if found is not None and found[0] == version:
                self._kept.move_to_end(name)
                value: _Value = found[1]
                return value
        # Outside of the lock: two threads may read the same value, none waits for another's.
        value = read()
        with self._keeping:
            self._kept[name] = (version, value)
            if len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
        return value
