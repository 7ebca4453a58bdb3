"""Fixtures over the sample world, for every room: one world a test session, served on demand."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from news_platform.sample.server import serve_world
from news_platform.sample.world import write_world


@pytest.fixture(scope="session")
def sample_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a whole sample world; tests read it and never write to it."""
    folder = tmp_path_factory.mktemp("sample") / "world"
    write_world(folder)
    return folder


@pytest.fixture(scope="session")
def sample_hosts(sample_world: Path) -> Iterator[Mapping[str, tuple[str, int]]]:
    """Serve the sample world for the session; give its host map."""
    with serve_world(sample_world) as host_map:
        yield host_map
