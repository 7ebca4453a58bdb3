"""`news-platform demo`: build the whole graph on the sample world, offline, and print a summary."""

import time

from news_platform.cli.command import Output, command, table
from news_platform.definitions import build_definitions
from news_platform.defs.services.demo import build_all, content_hash
from news_platform.errors import ConfigError
from news_platform.sample.world import SampleResources, place_inputs
from news_platform.settings import Settings
from news_platform.storage.commit.root import SAMPLE_FOLDER
from news_platform.takedowns.build_filters import input_filter


@command(access=None, has_progress=True, default_root=SAMPLE_FOLDER)
def demo(settings: Settings) -> Output:
    """Build the whole graph on the sample world, offline."""
    resources, root = SampleResources(settings, frozen_clock=True), settings.root
    started = time.monotonic()
    store = resources.data_root.store
    if store.local_folder is None:
        raise ConfigError(f"cannot build the demo in {root!r}: expected a local folder", thing=root)
    before = content_hash(store.local_folder)
    place_inputs(resources.world.folder, store, is_refused=input_filter(store))
    results = list(build_all(resources, build_definitions(resources)))
    resources.ledger.close()
    after = content_hash(store.local_folder)
    document = {
        "assets": [{"asset": one.asset, "built": one.built, "rows": one.rows} for one in results],
        "changed": before != after,
        "content_sha256": after,
    }
    rows = ((one.asset, len(one.built), one.rows, one.seconds) for one in results)
    done = "built what was out of date" if before != after else "up to date: no byte changed"
    seconds = time.monotonic() - started
    lines = [
        table(("asset", "built", "rows", "seconds"), rows),
        f"{done}; {seconds:.0f} s; data in {root}",
    ]
    return Output(document, "\n".join(lines))
