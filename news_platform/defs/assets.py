"""From the declaration of a dataset to its Dagster asset and its rebuild rule.

What the UI shows about an asset, what it is built from, how its partitions map, when it is late and
when it is stale are declared once, in `news_platform.datasets`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import wraps
from typing import Any, TypeAlias

import dagster as dg

from news_platform.datasets.dataset import WHOLE, Dataset, Freshness, ParentDataset, PartitionMap
from news_platform.datasets.registry import DATASETS, stored_parents
from news_platform.defs.checks import BLOCKING, Check, check
from news_platform.defs.metadata import column_schema, run_metadata
from news_platform.defs.partitions import PARTITIONS, partition_mapping, within_days
from news_platform.defs.rebuild_rules import Fingerprints, Parent, RebuildRule
from news_platform.defs.sensors import damaged_parents
from news_platform.errors import DamagedInput, hiding_addresses
from news_platform.resources import Resources
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.commit.markers import fingerprint, stale_partitions
from news_platform.storage.engines import ALLOW_REMOVAL_TAG, remove_gone, require_few_gone
from news_platform.storage.units import built_inputs, gone_units, unit_states, wanted_inputs

Metadata: TypeAlias = Mapping[str, object]
"""What a run reports about what it has built."""
PartitionMetadata: TypeAlias = Iterator[tuple[str, Metadata]]
"""What a run reports about each partition that it has built."""
AssetFunction = Callable[..., Metadata | PartitionMetadata]
FindInputs = Callable[[Resources], Fingerprints]
"""Return the fingerprint of the inputs of every partition."""


def asset_spec(dataset: Dataset, *, skippable: bool = False) -> dg.AssetSpec:
    """Return the asset of a dataset as its declaration describes it; a view is a virtual one."""
    is_view = dataset.place.engine == "view"
    place = "a view of `{}`, and nothing of it is stored" if is_view else "stored at `{}`"
    return dg.AssetSpec(
        dataset.name,
        # A parent that is not an asset is written by one.
        deps={
            DATASETS[parent.dataset].writer: dg.AssetDep(
                DATASETS[parent.dataset].writer,
                partition_mapping=partition_mapping(dataset, parent),
            )
            for parent in stored_parents(dataset)
        }.values(),
        description=f"{dataset.description}\n\nA row is {dataset.row}. "
        f"It is {place.format(dataset.path)}.",
        partitions_def=PARTITIONS[dataset.partitions],
        group_name=dataset.group,
        owners=[f"team:{dataset.group}"],
        kinds=set(dataset.kinds),
        tags={"sensitivity": dataset.sensitivity.value, "cost": dataset.cost},
        code_version=dataset.version,
        skippable=skippable,
        is_virtual=is_view,
        metadata={
            "path": dataset.path,
            "dagster/column_schema": column_schema(dataset),
            **({} if _policy(dataset) else {"no_freshness_policy": _no_policy(dataset)}),
        },
    )


def dataset_asset(
    dataset: Dataset, *, pool: str | None = None
) -> Callable[[AssetFunction], dg.AssetsDefinition]:
    """Make a function the asset of a dataset.

    It returns the metadata of its run, or yields each partition that it has built with its
    metadata; then its first parameter is the context. Errors lose the addresses of pages before
    Dagster stores them.
    """
    spec = asset_spec(dataset)

    def decorate(function: AssetFunction) -> dg.AssetsDefinition:
        @wraps(function)
        def build(*args: Any, **given: Any) -> dg.MaterializeResult[None]:
            metadata = version = None
            _require_sound_parents(dataset)
            with hiding_addresses():
                done = function(*args, **given)
                if isinstance(done, Mapping):
                    metadata = run_metadata(dataset, done)
                else:
                    for key, values in done:
                        shown = run_metadata(dataset, values)
                        args[0].add_asset_metadata(shown, partition_key=key)
                # Last: a dataset may have a stricter brake of its own.
                _remove_gone(dataset, *args, **given)
                if "platform" in given:
                    version = data_version(given["platform"], dataset, *_run_units(dataset))
            return dg.MaterializeResult(metadata=metadata, data_version=version)

        build.__annotations__ = {**function.__annotations__, "return": dg.MaterializeResult[None]}
        asset = dg.multi_asset(
            name=dataset.name,
            specs=[spec],
            backfill_policy=backfill_policy(dataset),
            pool=pool,
        )
        return asset(build)

    return decorate


def data_version(resources: Resources, dataset: Dataset, *units: str) -> dg.DataVersion | None:
    """Return the state of what a run has built; None: Dagster derives one from the inputs.

    By it Dagster tells whether a follower is unsynced, as our sensors do by the same states. It
    keeps one per run, so a run of several partitions has that of all of them.
    """
    states = data_states(resources, dataset)
    found = [states[unit] for unit in units if unit in states]
    if not found:
        return None
    return dg.DataVersion(found[0] if len(found) == 1 else fingerprint(found))


def data_states(resources: Resources, dataset: Dataset) -> Mapping[str, str]:
    """Return the state of every partition, where markers tell it.

    That of exports of the ledger is their content, which would have to be read.
    """
    is_content = dataset.fingerprint == "files"
    return {} if is_content else unit_states(resources.data_root.store, dataset)


def _run_units(dataset: Dataset) -> Sequence[str]:
    """Return the partitions of the run that is being executed."""
    if dataset.partitions == "whole":
        return [WHOLE]
    keys: Sequence[str] = dg.AssetExecutionContext.get().partition_keys
    return keys


def _require_sound_parents(dataset: Dataset) -> None:
    """Raise DamagedInput when a blocking check of a parent is red for a partition of this run.

    Dagster itself only keeps a run from going on; followers run in runs of their own.
    """
    guarded = [parent for parent in _parents(dataset) if parent.asset in BLOCKING]
    if not guarded:
        return
    instance = dg.AssetExecutionContext.get().instance
    for key, reason in damaged_parents(guarded, _run_units(dataset), instance).items():
        raise DamagedInput(
            f"refused to build {dataset.name} {key}: {reason}, and the damage would spread; repair "
            "the partition and run the check again",
            thing=key,
        )


def _remove_gone(dataset: Dataset, *args: Any, **given: Any) -> None:
    """Remove the partitions of a run whose parents are gone, and say so in their metadata."""
    if dataset.partitions not in ("day", "month") or "platform" not in given:
        return
    platform = given["platform"]
    if not gone_units(platform.data_root.store, dataset):
        return
    # Only a run that removes something pays for loading the engines of all features.
    from news_platform.composition.engines import open_dataset

    context, engine = args[0], open_dataset(platform, dataset)
    if engine is not None:
        for key in remove_gone(engine, context.partition_keys, allowed=may_remove(context)):
            context.add_asset_metadata({"removed": True}, partition_key=key)


def may_remove(context: dg.AssetExecutionContext) -> bool:
    """Return whether whoever launched a run allows it to remove more than the brake does."""
    return context.run.tags.get(ALLOW_REMOVAL_TAG) == "true"


def backfill_policy(dataset: Dataset) -> dg.BackfillPolicy | None:
    """Return how many partitions one run of a backfill builds."""
    return None if dataset.partitions == "whole" else dg.BackfillPolicy.multi_run(dataset.per_run)


def described(spec: dg.AssetSpec, resources: Resources) -> dg.AssetSpec:
    """Add what depends on the root and the settings: days, links and the freshness policy."""
    dataset, settings = DATASETS[spec.key.to_user_string()], resources.settings
    links: dict[str, object] = {"docs": _docs(dataset.page, settings.docs_url)}
    if settings.server.url is not None:
        page = f"{settings.server.url.rstrip('/')}{dataset.explorer}"
        links["explorer"] = dg.MetadataValue.url(page)
    found = within_days(spec.merge_attributes(metadata=links), resources.partition_days)
    policy = _policy(dataset)
    # In a root where nothing new arrives, nothing is late.
    if policy is None or not resources.is_live:
        return found
    return found.replace_attributes(freshness_policy=policy)


def _docs(page: str, docs_url: str | None) -> dg.MetadataValue:
    """Return a link to the docs page, or its path in the project if no URL is set."""
    if docs_url is not None:
        return dg.MetadataValue.url(f"{docs_url.rstrip('/')}/{page}")
    return dg.MetadataValue.path(f"docs/{page}")


def _policy(dataset: Dataset) -> dg.FreshnessPolicy | None:
    given = dataset.freshness
    # Days have a check instead, see `freshness_check`.
    if not isinstance(given, Freshness) or dataset.partitions == "day":
        return None
    return dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=given.fail_hours), warn_window=timedelta(hours=given.warn_hours)
    )


def freshness_check(dataset: Dataset, limits: Freshness) -> Check:
    """Return the check that the newest day of a dataset is built in time.

    A freshness policy looks at the last materialization: a backfill of an old day would hide that
    the newest one is missing.
    """

    @check(dataset, is_whole=True)
    def newest_day_is_built(resources: Resources, _key: str) -> dg.AssetCheckResult:
        """The newest day is not older than the declaration of the dataset allows.

        If red: `news-platform status` says what the newest days wait for.
        """
        newest = max(unit_states(resources.data_root.store, dataset), default=None)
        # Where nothing new arrives, and before the first day, nothing is late.
        if newest is None or not resources.is_live:
            return dg.AssetCheckResult(passed=True, metadata={"newest": newest or "none"})
        end = datetime.combine(date.fromisoformat(newest), time.min, UTC) + timedelta(days=1)
        hours = (resources.clock.now() - end) / timedelta(hours=1)
        is_late = hours > limits.fail_hours
        return dg.AssetCheckResult(
            passed=hours <= limits.warn_hours,
            severity=dg.AssetCheckSeverity.ERROR if is_late else dg.AssetCheckSeverity.WARN,
            metadata={"newest": newest, "hours_since_its_end": round(max(0.0, hours), 1)},
        )

    return newest_day_is_built


def _no_policy(dataset: Dataset) -> str:
    if dataset.place.engine == "view":
        return "it is as fresh as what it joins"
    is_day = isinstance(dataset.freshness, Freshness)
    return "its check newest_day_is_built" if is_day else str(dataset.freshness)


def rebuild_rule(
    dataset: Dataset,
    *,
    options: Callable[[Resources], object] = lambda _resources: None,
    wanted: FindInputs | None = None,
    built: FindInputs | None = None,
    redone: FindInputs = lambda _resources: {},
    is_behind: Callable[[Resources], bool] | None = None,
    **following: Any,
) -> RebuildRule:
    """Return when a dataset is stale, and what its partitions wait for, by its declaration.

    `options` has the values that the declaration names. `wanted` and `built` are own rules, for
    datasets whose inputs are not simply the units of their parents; `redone` are partitions that
    are stale for another reason, such as a new version. `is_behind` is that of `Parent`, and
    `following` are further fields of the rule.
    """

    def find_built(resources: Resources) -> Fingerprints:
        return built(resources) if built else built_inputs(resources.data_root.store, dataset)

    def stale(resources: Resources) -> Fingerprints:
        store = resources.data_root.store
        # What was built first: a build that ends in between then looks stale, never current.
        held = find_built(resources)
        now = wanted(resources) if wanted else wanted_inputs(store, dataset, options(resources))
        # Automation stops here; a person confirms the removal with the tag of a run.
        gone = [key for key, inputs in now.items() if inputs == REMOVED]
        require_few_gone(dataset, gone, held=len(held))
        again = {key: why for key, why in redone(resources).items() if key in now}
        return {**again, **stale_partitions(now, held)}

    return RebuildRule(
        dataset.name,
        following.pop("stale", stale),
        parents=tuple(replace(it, is_behind=is_behind) for it in _parents(dataset)),
        partitions=PARTITIONS[dataset.partitions],
        per_run=dataset.per_run,
        built=find_built,
        sensor=following.pop("sensor", f"follow_{dataset.name}"),
        **following,
    )


def _parents(dataset: Dataset) -> Iterable[Parent]:
    return [
        Parent(parent.dataset, _awaited(dataset, parent))
        for parent in stored_parents(dataset)
        if parent.is_followed
    ]


def _awaited(dataset: Dataset, parent: ParentDataset) -> PartitionMap | None:
    """Return which partitions of a parent one waits for; None: it takes those that are finished."""
    is_whole = "whole" in (dataset.partitions, DATASETS[parent.dataset].partitions)
    return None if is_whole or parent.partitions.kind == "every" else parent.partitions
