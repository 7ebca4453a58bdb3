"""The code location of the cluster demo: all assets over the sample, with a frozen clock.

It has no sensors and schedules, so that only the demo launches runs.
"""

import os

from deploy.manual import without_automation
from news_platform.definitions import build_definitions
from news_platform.sample.world import SampleResources
from news_platform.settings import load_settings

defs = without_automation(
    build_definitions(SampleResources(load_settings(os.environ), frozen_clock=True))
)
