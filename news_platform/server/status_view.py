"""The status of all assets, from the function of `news-platform status`, looked up rarely."""

import threading
import time

from news_platform.resources import Resources
from news_platform.server.documents import StatusDocument

# Planning what every sensor would do takes a second or more on a large root.
_GOOD_SECONDS = 15.0


class StatusReader:
    """The status as it was a few seconds ago; the first caller waits for it."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._looking = threading.Lock()
        self._found: StatusDocument | None = None
        self._good_until = 0.0

    def current(self) -> StatusDocument:
        """Return the status; while one caller looks, others get the last one."""
        found = self._found
        is_old = time.monotonic() >= self._good_until
        if is_old and self._looking.acquire(blocking=found is None):
            try:
                found = self._found
                if found is None or time.monotonic() >= self._good_until:
                    found = self._found = self._look()
                    self._good_until = time.monotonic() + _GOOD_SECONDS
            finally:
                self._looking.release()
        assert found is not None
        return found

    def _look(self) -> StatusDocument:
        # Loads Dagster and the whole graph, which no other page needs.
        from news_platform.defs.graph import BUILD_ORDER
        from news_platform.defs.status import platform_status

        document = platform_status(BUILD_ORDER, self._resources).document()
        # Where the root lies is nobody's business on another machine.
        return StatusDocument.model_validate(document)
