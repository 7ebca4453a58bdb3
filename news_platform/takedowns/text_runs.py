"""Pure: a text in, hashes of short runs of its bytes out; and the search for them in other bytes.

Runs begin where the hash of three bytes is small, so a text has the same runs wherever it is
stored: in a table, in JSON, in HTML or in a database page. Only the hashes are kept of a removed
text. A run has no byte that JSON or HTML escapes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# About six words. A shorter run would also occur in other texts.
RUN_BYTES = 32
# Hashes kept of a text: 128 bytes, whatever its length.
KEPT_RUNS = 16
# A text with fewer runs, of about 300 bytes, is too short to be recognised by them.
FEWEST_RUNS = 5
# Texts by one template, such as results and weather, share more than half of their runs.
_SHARE_OF_COPY = 0.8
# The hash of three bytes, in one byte, lets about one position in 64 begin a run. Arithmetic with
# single bytes is the fastest that numpy has.
_ANCHOR_FACTORS = (np.uint8(167), np.uint8(91), np.uint8(213))
_ANCHOR_BELOW = np.uint8(4)
# The first eight bytes of a run have a hash of 16 bits, by which nearly all others are left out.
_START_BYTES = 8
_START_SHIFT = np.uint64(48)
_TABLE_SIZE = 1 << 16
# The hash of a run is looked up in a larger table first, by these of its bits.
_RUN_SHIFT = np.uint64(16)
_RUN_TABLE_SIZE = 1 << 20
# What is searched at once stays in the caches of the processor.
_BLOCK_BYTES = 1 << 17
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5],
    dtype=np.uint64,
)
_ESCAPED = np.zeros(256, dtype=bool)
_ESCAPED[[*range(32), *b'"\\&<>', 127]] = True

Hashes = NDArray[np.uint64]


def runs_of(text: str) -> tuple[int, ...]:
    """Return the hashes that are kept of a text: its smallest ones; none of a short text."""
    content = text.encode("utf-8", "replace")
    windows = _windows(content, _anchors(content))
    windows = windows[~_ESCAPED[windows].any(axis=1)]
    found = np.unique(_hashed(windows))[:KEPT_RUNS]
    return tuple(map(int, found)) if len(found) >= FEWEST_RUNS else ()


@dataclass(frozen=True)
class RemovedTexts:
    """The runs of removed texts, to be looked for in bytes; `equal` are hashes of whole texts."""

    runs: Sequence[Sequence[int]] = ()
    equal: frozenset[str] = field(default=frozenset(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.runs)

    def positions(self, content: bytes | memoryview) -> NDArray[np.intp]:
        """Return where runs of removed texts begin; they alone do not make a copy."""
        if not self.runs:
            return np.zeros(0, dtype=np.intp)
        return self._search(content)[0]

    def held_by(self, *contents: bytes | memoryview) -> bool:
        """Return whether the contents have nearly all that is known of a removed text."""
        if not self.runs:
            return False
        known = np.unique(np.concatenate([self._search(content)[1] for content in contents]))
        if not len(known):
            return False
        owners = self._owners
        first, last = (np.searchsorted(owners.hashes, known, side) for side in ("left", "right"))
        texts = [owners.texts[a:b] for a, b in zip(first, last, strict=True)]
        counts = np.bincount(np.concatenate(texts), minlength=len(self.runs))
        return bool((counts >= self._needed).any())

    @cached_property
    def _needed(self) -> NDArray[np.float64]:
        sizes = np.array([len(one) for one in self.runs])
        return np.asarray(np.ceil(sizes * _SHARE_OF_COPY))

    @cached_property
    def _owners(self) -> "_Owners":
        return _Owners.of(self.runs)

    @cached_property
    def _wanted(self) -> NDArray[np.bool_]:
        """Return the hashes of first bytes that begin a known run."""
        table = np.zeros(_TABLE_SIZE, dtype=bool)
        table[(self._owners.hashes & np.uint64(_TABLE_SIZE - 1)).astype(np.intp)] = True
        return table

    @cached_property
    def _run_table(self) -> NDArray[np.bool_]:
        table = np.zeros(_RUN_TABLE_SIZE, dtype=bool)
        table[_run_places(self._owners.hashes)] = True
        return table

    def _search(self, content: bytes | memoryview) -> tuple[NDArray[np.intp], Hashes]:
        """Return where known runs begin, and their hashes."""
        starts = _anchors(content)
        firsts = _windows(content, starts, _START_BYTES).view("<u8")
        starts = starts[self._wanted[_marks(firsts[:, 0])]] if len(starts) else starts
        hashes = _hashed(_windows(content, starts))
        # A large table decides about nearly all; only the rest is searched for.
        likely = np.flatnonzero(self._run_table[_run_places(hashes)])
        starts, hashes, known = starts[likely], hashes[likely], self._owners.hashes
        places = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        is_known = known[places] == hashes
        return starts[is_known], hashes[is_known]


@dataclass(frozen=True, slots=True)
class _Owners:
    """All known hashes, sorted, each with the number of its text."""

    hashes: Hashes
    texts: NDArray[np.int64]

    @classmethod
    def of(cls, runs: Iterable[Sequence[int]]) -> "_Owners":
        given = list(runs)
        hashes = np.array([one for text in given for one in text], dtype=np.uint64)
        texts = np.repeat(np.arange(len(given)), [len(text) for text in given])
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], texts[order])


def _run_places(hashes: Hashes) -> NDArray[np.intp]:
    places = (hashes >> _RUN_SHIFT) & np.uint64(_RUN_TABLE_SIZE - 1)
    return np.asarray(places.astype(np.intp))


def _anchors(content: bytes | memoryview) -> NDArray[np.intp]:
    """Return where runs begin, in order."""
    last = len(content) - RUN_BYTES
    starts = [np.zeros(0, dtype=np.intp)]
    for start in range(0, last + 1, _BLOCK_BYTES):
        size = min(_BLOCK_BYTES, last + 1 - start)
        part = np.frombuffer(content, np.uint8, size + 2, start)
        hashes = part[:-2] * _ANCHOR_FACTORS[0]
        hashes += part[1:-1] * _ANCHOR_FACTORS[1]
        hashes += part[2:] * _ANCHOR_FACTORS[2]
        starts.append(np.flatnonzero(hashes < _ANCHOR_BELOW) + start)
    return np.concatenate(starts)


def _marks(starts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of the first eight bytes of runs."""
    return np.asarray((starts * _FACTORS[0]) >> _START_SHIFT)


def _windows(
    content: bytes | memoryview, starts: NDArray[np.intp], size: int = RUN_BYTES
) -> NDArray[np.uint8]:
    if not len(starts):
        return np.zeros((0, size), dtype=np.uint8)
    every = np.lib.stride_tricks.sliding_window_view(np.frombuffer(content, np.uint8), size)
    return np.ascontiguousarray(every[starts])


def _hashed(windows: NDArray[np.uint8]) -> Hashes:
    """Return a hash of each window; its lowest 16 bits are the hash of its first bytes."""
    if not len(windows):
        return np.zeros(0, dtype=np.uint64)
    words = windows.view("<u8")
    folded = words @ _FACTORS
    folded = (folded ^ (folded >> np.uint64(32))) * _FACTORS[0]
    folded ^= folded >> np.uint64(29)
    low = np.uint64(_TABLE_SIZE - 1)
    return np.asarray((folded & ~low) | _marks(words[:, 0]))
