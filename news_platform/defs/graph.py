"""The whole graph: the definitions of all modules of this package, jobs, and the build order.

A module takes part by what it defines: assets, sensors, schedules, jobs, checks and rebuild rules.
A job builds one asset for a set of partitions. Sensors do the same automatically; jobs are for
backfills and for builds that should not wait.
"""

import pkgutil
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import TypeVar

import dagster as dg

from news_platform import defs
from news_platform.datasets.dataset import Freshness
from news_platform.datasets.registry import DATASETS, stored_parents
from news_platform.defs.assets import asset_spec, freshness_check
from news_platform.defs.checks import Check, nightly_definitions
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.runs import CRAWL_OUTPUTS, JOB_ASSETS
from news_platform.defs.sensors import reconciling_sensor

T = TypeVar("T")


def _modules() -> tuple[ModuleType, ...]:
    names = sorted(it.name for it in pkgutil.iter_modules(defs.__path__) if not it.ispkg)
    own = __name__.rpartition(".")[2]
    return tuple(import_module(f"{defs.__name__}.{name}") for name in names if name != own)


def _defined(kind: type[T], *modules: ModuleType) -> list[T]:
    """Return the objects of a kind that modules define or import, each once."""
    found = {id(one): one for module in modules for one in vars(module).values()}
    return [one for one in found.values() if isinstance(one, kind)]


def definitions_of(
    *modules: ModuleType, describe: Callable[[dg.AssetSpec], dg.AssetSpec] = lambda spec: spec
) -> dg.Definitions:
    """Return the Dagster definitions of modules, with the sensors of their rebuild rules.

    `describe` adds what depends on the root to the spec of each asset.
    """
    assets = dg.map_asset_specs(
        describe, [*_defined(dg.AssetSpec, *modules), *_defined(dg.AssetsDefinition, *modules)]
    )
    # A root may narrow the days of an asset; its checks must have the same ones.
    partitions = {
        spec.key: spec.partitions_def
        for one in assets
        for spec in (one.specs if isinstance(one, dg.AssetsDefinition) else (one,))
    }
    rules = _defined(RebuildRule, *modules)
    return dg.Definitions(
        assets=assets,
        asset_checks=[
            one.within(partitions.get(one.key.asset_key, one.partitions_def)).definition
            for one in _defined(Check, *modules)
        ],
        sensors=[
            *_defined(dg.SensorDefinition, *modules),
            *(reconciling_sensor(rule) for rule in rules if rule.sensor),
        ],
        schedules=_defined(dg.ScheduleDefinition, *modules),
        jobs=_defined(dg.JobDefinition, *modules),
    )


_MODULES = _modules()

_RULES: Mapping[str, RebuildRule] = {rule.asset: rule for rule in _defined(RebuildRule, *_MODULES)}
# What is written beside another dataset is as fresh as that one.
_FRESHNESS = tuple(
    freshness_check(one, one.freshness)
    for one in DATASETS.values()
    if one.name in _RULES and one.partitions == "day" and isinstance(one.freshness, Freshness)
)
CHECKS: tuple[Check, ...] = (*_defined(Check, *_MODULES), *_FRESHNESS)
"""Every check."""

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


def _is_crawl_day(name: str) -> bool:
    """Return whether an asset is a daily one that raw_news is an ancestor of, or itself."""
    dataset = DATASETS[name]
    if not dataset.is_asset or dataset.partitions != "day":
        return False
    followed = [it.dataset for it in stored_parents(dataset) if it.is_followed]
    return name in CRAWL_OUTPUTS or any(map(_is_crawl_day, followed))


def all_definitions(describe: Callable[[dg.AssetSpec], dg.AssetSpec]) -> dg.Definitions:
    """Return the definitions of all modules, the jobs of assets, and the nightly checks."""
    jobs = [
        dg.define_asset_job(
            name,
            selection=dg.AssetSelection.assets(*assets),
            description=f"Build {assets[0]} now. {DATASETS[assets[0]].description}",
        )
        for name, assets in JOB_ASSETS.items()
    ]
    # It has one day per run, because a day of the crawl takes hours.
    warnings.filterwarnings("ignore", message="Asset job build_crawl_days materializes")
    days = [name for name in DATASETS if _is_crawl_day(name)]
    jobs.append(
        dg.define_asset_job(
            "build_crawl_days",
            selection=dg.AssetSelection.assets(*days),
            description="Collect days of the crawl and build every daily asset after them.",
        )
    )
    views = [describe(asset_spec(one)) for one in DATASETS.values() if one.place.engine == "view"]
    freshness = [one.definition for one in _FRESHNESS]
    return dg.Definitions.merge(
        definitions_of(*_MODULES, describe=describe),
        dg.Definitions(assets=views, jobs=jobs, asset_checks=freshness),
        nightly_definitions(CHECKS),
    )
