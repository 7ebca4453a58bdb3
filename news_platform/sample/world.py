"""The sample world for demo and tests: write it to a folder, or add a WARC that came late."""

from datetime import date
from pathlib import Path

from news_platform.errors import InputError
from news_platform.sample.build import WorldSummary, articles_of, build_world
from news_platform.sample.crawl import late_warc
from news_platform.sample.dates import DAYS, WORLD_NOW
from news_platform.sample.folder import read_manifest, write_folder

__all__ = ["DAYS", "SEED", "WORLD_NOW", "WorldSummary", "add_late_warc", "write_world"]

SEED = 20251103


def write_world(folder: Path, *, seed: int = SEED) -> WorldSummary:
    """Write the world of a seed; a complete one is left untouched, a half-written one mended.

    Late WARCs that were added to the same world are kept.
    """
    manifest = read_manifest(folder)
    if manifest and manifest.holds(folder, seed):
        return manifest.summary
    late = manifest.late if manifest and manifest.summary.seed == seed else ()
    world = build_world(seed, late=late)
    write_folder(folder, world, old=manifest)
    return world.summary


def add_late_warc(folder: Path, day: date) -> str:
    """Add one more WARC to a day of a written world and to its listing; return its path.

    The path is relative to the crawl folder, as in the listing. A second call changes nothing.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"no sample world in {str(folder)!r}; write it first", thing=str(folder))
    if day not in DAYS:
        raise InputError(f"the sample world has no day {day.isoformat()!r}", thing=day.isoformat())
    seed = manifest.summary.seed
    if day not in manifest.late or not manifest.holds(folder, seed):
        late = sorted({*manifest.late, day})
        write_folder(folder, build_world(seed, late=late), old=manifest)
    return late_warc(articles_of(seed), day, seed).path
