"""What a bucket has lost: files that its manifest names and the store no longer has whole."""

from collections.abc import Mapping
from dataclasses import replace

from news_platform.domain_store.layout import bucket_folders, manifest_path
from news_platform.domain_store.manifest import Manifest, Segment
from news_platform.storage.objects.store import ObjectStore


def without_lost(store: ObjectStore, manifest: Manifest) -> Manifest:
    """Return the manifest without the segments that have lost a file; the same when none has.

    A data file or index of another size than the manifest says is lost, too. Without its index no
    segment can be told from another, so all count as lost.
    """
    folders = bucket_folders(manifest.bucket)
    sizes = {info.path: info.size_bytes for folder in folders for info in store.list(f"{folder}/")}
    own, index = manifest_path(manifest.bucket, manifest.generation), manifest.index
    is_indexed = sizes.get(index.path) == index.size_bytes
    if not is_indexed or not {index.ranges_path, own} <= sizes.keys():
        return replace(manifest, segments=(), empty={})
    whole = tuple(segment for segment in manifest.segments if _is_whole(segment, sizes))
    return manifest if whole == manifest.segments else replace(manifest, segments=whole)


def _is_whole(segment: Segment, sizes: Mapping[str, int]) -> bool:
    has_size = all(sizes.get(file.path) == file.size_bytes for file in segment.files)
    return has_size and sizes.keys() >= set(segment.paths)
