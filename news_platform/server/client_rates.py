"""Pure: how long a client must wait before its next request, by one token bucket per client."""

from collections import OrderedDict

# A browser that opens a page and its neighbours sends a few requests at once.
_BURST_SECONDS = 10
_LEAST_BURST = 20
# The oldest clients are forgotten, so that no crowd of addresses fills the memory.
_REMEMBERED_CLIENTS = 10_000


class ClientRates:
    """The requests that each client may still send."""

    def __init__(self, requests_per_minute: int) -> None:
        self._per_second = requests_per_minute / 60
        self._burst = max(_LEAST_BURST, self._per_second * _BURST_SECONDS)
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, client: str, *, now: float) -> float:
        """Count a request at the moment `now`; return 0, or the seconds until one is allowed."""
        if not self._per_second:
            return 0.0
        left, then = self._clients.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_second)
        is_allowed = left >= 1
        self._clients[client] = (left - 1 if is_allowed else left, now)
        if len(self._clients) > _REMEMBERED_CLIENTS:
            self._clients.popitem(last=False)
        return 0.0 if is_allowed else (1 - left) / self._per_second
