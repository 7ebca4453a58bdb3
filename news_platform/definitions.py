"""The one Definitions object: every feature's assets, checks and automation, with resources."""

import os

import dagster as dg

from news_platform.cluster.clouds import cloud_resources
from news_platform.defs.assets import described
from news_platform.defs.graph import all_definitions
from news_platform.defs.runs import run_naming_resources
from news_platform.isolation.worker import forbid_core_dumps
from news_platform.logs import configure_logging, is_configured
from news_platform.resources import Resources, open_resources
from news_platform.settings import environment_secrets, load_settings


def build_definitions(resources: Resources) -> dg.Definitions:
    """Join the definitions of all features, with these resources."""
    shared = dg.Definitions(
        resources={**run_naming_resources(resources), **cloud_resources(resources.settings)},
        executor=dg.in_process_executor,
    )
    return dg.Definitions.merge(all_definitions(lambda spec: described(spec, resources)), shared)


# Dagster's code servers and runs start here, not at the command line.
forbid_core_dumps()
_settings = load_settings(os.environ)
if not is_configured():  # the command line has chosen for its own process
    _logs, _secrets = _settings.logs, environment_secrets(os.environ)
    configure_logging(_logs.format, _logs.level, secrets=_secrets, logger=__package__)
defs = build_definitions(open_resources(_settings, may_connect=False))
