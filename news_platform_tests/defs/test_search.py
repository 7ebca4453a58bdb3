"""The nightly job joins the indexes of old days into months."""

from pathlib import Path

import dagster as dg
import pytest

from news_platform.defs.search import maintain_search, maintain_search_every_night
from news_platform.resources import Resources
from news_platform.search.pipeline import MONTHS_DATASET
from news_platform.settings import Settings
from news_platform.storage.commit.markers import read_inputs
from news_platform.storage.commit.root import RootAccess, pause
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.defs.over import resumed
from news_platform_tests.search.indexes import DAYS, MONTH, counts, fill, open_indexes


@pytest.fixture
def resources(local_store: ObjectStore, tmp_path: Path) -> Resources:
    """Return a root with the indexes of an old month and of a newer day."""
    found = Resources(Settings(root=resumed(local_store.url)), RootAccess.CREATE)
    fill(found.data_root.store, tmp_path)
    return found


def test_the_nightly_job_joins_old_months(resources: Resources, tmp_path: Path) -> None:
    store = resources.data_root.store
    with dg.DagsterInstance.ephemeral() as instance:
        done = maintain_search.execute_in_process(
            instance=instance, resources={"platform": resources}
        )
    assert done.success
    assert list(read_inputs(store, MONTHS_DATASET)) == [MONTH]
    assert open_indexes(store, tmp_path) == 2
    assert counts(store, tmp_path) == dict.fromkeys(DAYS, 6)


def test_a_paused_root_is_left_alone(resources: Resources) -> None:
    given = {"platform": resources}
    context = dg.build_schedule_context(resources=given)
    assert isinstance(maintain_search_every_night(context), dg.RunRequest)
    pause(resources.data_root.store)
    skipped = maintain_search_every_night(dg.build_schedule_context(resources=given))
    assert isinstance(skipped, dg.SkipReason)
