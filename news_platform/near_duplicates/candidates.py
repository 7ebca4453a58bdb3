"""Which documents of a batch are worth comparing: those that share band keys."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
# A key that more documents share is a template's; each then meets only this many neighbours, and
# the neighbours' neighbours hold the cluster together.
_MAX_MEETINGS = 20


def candidate_pairs(keys: Numbers, *, min_shared: int) -> Iterator[tuple[int, int]]:
    """Give the pairs of row numbers (low, high) that share at least `min_shared` band keys.

    `keys` has one row a document and one column a band.
    """
    count = keys.shape[0]
    met = [pairs for column in keys.T for pairs in _pairs_of_band(column, count)]
    if met:
        pairs, shared = np.unique(np.concatenate(met), return_counts=True)
        kept = pairs[shared >= min_shared]
        yield from zip((kept // count).tolist(), (kept % count).tolist(), strict=True)


def _pairs_of_band(column: Numbers, count: int) -> Iterator[Numbers]:
    """Give the pairs that share a key of one band, each as low * count + high."""
    order = np.argsort(column, kind="stable")  # rows of one key lie together, in their own order
    ordered = column[order]
    for distance in range(1, min(_MAX_MEETINGS + 1, count)):
        same = ordered[distance:] == ordered[:-distance]
        if not same.any():
            return
        yield order[:-distance][same] * count + order[distance:][same]
