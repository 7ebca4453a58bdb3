"""What a run over the whole graph needs to know of an asset: which partitions are out of date."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from news_platform.defs.reconcile import Edge
from news_platform.resources import Resources


@dataclass(frozen=True, slots=True)
class Step:
    """One asset, and how to tell which of its partitions to build, oldest first."""

    asset: str
    stale: Callable[[Resources], Sequence[str]]


def step_of(edge: Edge) -> Step:
    """Return the step of an asset that follows its inputs by fingerprint."""
    return Step(edge.asset, lambda resources: sorted(edge.stale(resources.data_root.store)))
