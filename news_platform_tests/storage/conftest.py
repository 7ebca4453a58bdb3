"""A remote store behind a proxy that injects faults."""

from dataclasses import dataclass

import pytest

from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.emulators.fault_proxy import FaultProxy


@dataclass(frozen=True, slots=True)
class Remote:
    """A store in an emulator and the proxy in front of it."""

    store: ObjectStore
    proxy: FaultProxy

    def asked(self, method: str, match: str = "") -> int:
        """Return how many such requests reached the proxy."""
        return sum(r.method == method and match in r.target for r in self.proxy.seen)


@pytest.fixture(params=["s3", "gs"])
def remote(request: pytest.FixtureRequest) -> Remote:
    """Return an empty store of each remote kind in turn, with its proxy."""
    store = request.getfixturevalue(f"{request.param}_store")
    proxy, _url = request.getfixturevalue(f"{request.param}_faults")
    return Remote(store, proxy)
