"""The whole graph: the definitions of all modules of this package, jobs, and the build order.

A module takes part by what it defines: `defs` are its Dagster definitions, `CHECKS` its checks,
`RULES` the rebuild rules of its assets. A job builds one asset for a set of partitions. Sensors do
the same automatically; jobs are for backfills and for builds that should not wait.
"""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

import dagster as dg

from news_platform import defs
from news_platform.datasets.registry import DATASETS
from news_platform.defs.checks import Check, nightly_definitions
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.tasks import TASKS
from news_platform.resources import Resources


def _modules() -> tuple[ModuleType, ...]:
    names = sorted(it.name for it in pkgutil.iter_modules(defs.__path__) if not it.ispkg)
    own = __name__.rpartition(".")[2]
    return tuple(import_module(f"{defs.__name__}.{name}") for name in names if name != own)


_MODULES = _modules()
_FEATURES = tuple(
    one.defs for one in _MODULES if isinstance(getattr(one, "defs", None), dg.Definitions)
)

CHECKS: tuple[Check, ...] = tuple(
    {check.key: check for one in _MODULES for check in getattr(one, "CHECKS", ())}.values()
)
"""Every check, also those that assets evaluate in their own step."""

_RULES: Mapping[str, RebuildRule] = {
    rule.asset: rule for one in _MODULES for rule in getattr(one, "RULES", ())
}
BUILD_ORDER: tuple[RebuildRule, ...] = tuple(_RULES[name] for name in DATASETS if name in _RULES)
"""Every asset that is built, with its rebuild rule, parents before children."""

VIEWS: Mapping[str, str] = {
    "one feature": 'group:"ccnews"',
    "everything that depends on the crawl": 'key:"warc_paths"+',
    "sources of the editors' sheet": '+key:"article_sheets"',
    "neighbours of the robots survey": '1+key:"domain_metadata"+1',
    "tables for analysts": 'kind:"parquet"',
    "third-party texts, to be handled with care": 'tag:"sensitivity"="third-party-text"',
    "assets that cost hours or gigabytes": 'tag:"cost"="high"',
    "what one team is responsible for": 'owner:"team:rss"',
}
"""Selections for the filter field above the lineage graph and the catalog."""


def _job_definitions() -> dg.Definitions:
    """Build one job per task."""
    building = [
        dg.define_asset_job(
            name, selection=dg.AssetSelection.assets(*task.assets), description=task.purpose
        )
        for name, task in TASKS.items()
    ]
    return dg.Definitions(jobs=building)


FEATURES = (*_FEATURES, _job_definitions(), nightly_definitions(CHECKS))
"""The definitions of all modules."""


def dagster_resources(resources: Resources) -> Mapping[str, object]:
    """Return the resources by the parameter names of assets and sensors.

    `platform` is all of them, for sensors and schedules that look for stale partitions.
    """
    return {
        "platform": resources,
        "data_root": resources.data_root,
        "crawl": resources.crawl,
        "web": resources.web,
        "ledger": resources.ledger,
        "clock": resources.clock,
    }
