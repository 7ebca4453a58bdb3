"""Build what is out of date of a sample root anywhere; `news-platform demo` takes only a folder."""

import os
import sys

from news_platform.definitions import build_definitions
from news_platform.defs.services.demo import build_all
from news_platform.sample.world import SampleResources, place_inputs
from news_platform.settings import load_settings
from news_platform.takedowns.build_filters import input_filter


def main(root: str) -> None:
    """Place the inputs of the world and build every asset."""
    settings = load_settings(os.environ).model_copy(update={"root": root})
    resources = SampleResources(settings, frozen_clock=True)
    store = resources.data_root.store
    place_inputs(resources.world.folder, store, is_refused=input_filter(store))
    for _ in build_all(resources, build_definitions(resources)):
        pass
    resources.ledger.close()


if __name__ == "__main__":
    main(sys.argv[-1])
