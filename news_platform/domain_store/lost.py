"""What a bucket has lost: files that its manifest names and the store no longer has."""

from dataclasses import replace

from news_platform.domain_store.layout import bucket_folders, manifest_path
from news_platform.domain_store.manifest import Manifest
from news_platform.storage.store import ObjectStore


def without_lost(store: ObjectStore, manifest: Manifest) -> Manifest:
    """Return the manifest without the segments that have lost a file; the same when none has.

    Without its index no segment can be told from another, so all count as lost.
    """
    folders = bucket_folders(manifest.bucket)
    present = {info.path for folder in folders for info in store.list(f"{folder}/")}
    own = manifest_path(manifest.bucket, manifest.generation)
    if not {manifest.index.path, manifest.index.ranges_path, own} <= present:
        return replace(manifest, segments=(), empty={})
    whole = tuple(segment for segment in manifest.segments if present.issuperset(segment.paths))
    return manifest if whole == manifest.segments else replace(manifest, segments=whole)
