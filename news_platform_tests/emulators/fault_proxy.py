"""A proxy in front of an emulator that injects faults: 503, drop, truncation, lost answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Literal

from news_platform_tests.emulators.relay import Answer, Request, forward, serve

Kind = Literal["slow_down", "drop", "stall", "truncate", "lose_answer"]
_SLOW_DOWN = (
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


@dataclass(slots=True)
class Fault:
    """A fault for the next `times` requests with this method whose target contains `match`.

    slow_down    503 without a request to the store
    drop         the connection closes half-way through the body
    stall        the same after ten seconds without data
    truncate     half the body, with a Content-Length that matches it
    lose_answer  the store applies the request, but its answer never arrives
    """

    kind: Kind
    method: str
    times: int = 1
    match: str = ""


@dataclass(slots=True)
class FaultProxy:
    """Relay requests to `upstream` and apply the pending faults; `seen` logs each request.

    `page_size` shortens the pages of listings, so that a few objects fill several pages.
    """

    upstream: str
    faults: list[Fault] = field(default_factory=list)
    seen: list[Request] = field(default_factory=list)
    page_size: int | None = None
    _lock: Lock = field(default_factory=Lock)
    # The emulator compares and sets in two steps; one write at a time makes that atomic.
    _one_write: Lock = field(default_factory=Lock)

    def inject(self, kind: Kind, method: str, *, times: int = 1, match: str = "") -> None:
        """Make the next `times` matching requests fail."""
        self.faults.append(Fault(kind, method, times, match))

    def answer(self, request: Request) -> Answer:
        kind = self._due(request)
        if kind == "slow_down":
            return Answer(503, {"content-type": "application/xml"}, _SLOW_DOWN, len(_SLOW_DOWN))
        return _with_fault(self._forwarded(request), kind)

    def _forwarded(self, request: Request) -> Answer:
        if self.page_size and "list-type" in request.query:
            request = replace(request, target=f"{request.target}&max-keys={self.page_size}")
        if request.method in ("GET", "HEAD"):
            return forward(request, self.upstream)
        with self._one_write:
            return forward(request, self.upstream)

    def _due(self, request: Request) -> Kind | None:
        with self._lock:
            self.seen.append(request)
            for fault in self.faults:
                wanted = fault.method == request.method and fault.match in request.target
                if fault.times and wanted:
                    fault.times -= 1
                    return fault.kind
        return None


@contextmanager
def fault_proxy(upstream: str) -> Iterator[tuple[FaultProxy, str]]:
    """Run a proxy in front of `upstream`; yield it and its URL."""
    proxy = FaultProxy(upstream)
    with serve(proxy) as url:
        yield proxy, url


def _with_fault(answer: Answer, kind: Kind | None) -> Answer:
    half = answer.body[: len(answer.body) // 2]
    if kind in ("drop", "stall"):
        return replace(answer, body=half, stall_seconds=10.0 if kind == "stall" else 0.0)
    if kind == "truncate":
        return replace(answer, body=half, declared_size=len(half))
    return replace(answer, silent=kind == "lose_answer")
