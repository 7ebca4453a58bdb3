"""The code location of ten days, with a frozen clock and without automation."""

import os

from deploy.manual import without_automation
from deploy.ten_days import TenDays
from news_platform.definitions import build_definitions
from news_platform.settings import load_settings

defs = without_automation(build_definitions(TenDays(load_settings(os.environ), frozen_clock=True)))
