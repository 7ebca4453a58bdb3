"""Find and delete the old versions that a versioned S3 bucket keeps of its objects.

obstore knows no versions, so this is the one place that asks boto3. A local folder has none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from news_platform.errors import StorageError, StoreUnavailable
from news_platform.storage.chunks import chunked
from news_platform.storage.objects.backends import backend_of
from news_platform.storage.objects.interfaces import StoreOptions
from news_platform.storage.objects.store import ObjectStore

if TYPE_CHECKING:
    from botocore.client import BaseClient

_DELETE_BATCH = 1000


@dataclass(frozen=True, slots=True)
class OldVersions:
    """How many old versions lie under a root, with their bytes."""

    count: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Version:
    key: str
    version_id: str
    size_bytes: int


def has_versions(store: ObjectStore) -> bool:
    """Return whether replaced objects may have old versions that this module can see."""
    backend = backend_of(store.url, store.options)
    return backend is not None and backend.versions == "listed"


def count_old_versions(store: ObjectStore) -> OldVersions:
    """Count the old versions under a store; raise StorageError if the bucket does not say."""
    sizes = [one.size_bytes for one in _iter_old(store)] if has_versions(store) else []
    return OldVersions(len(sizes), sum(sizes))


def delete_old_versions(store: ObjectStore) -> OldVersions:
    """Delete every old version under a store, and the marks of deleted objects."""
    found = list(_iter_old(store)) if has_versions(store) else []
    for batch in chunked(found, _DELETE_BATCH):
        named = [{"Key": one.key, "VersionId": one.version_id} for one in batch]
        _call(store, "delete_objects", Delete={"Objects": named, "Quiet": True})
    return OldVersions(len(found), sum(one.size_bytes for one in found))


def _iter_old(store: ObjectStore) -> Iterator[_Version]:
    if "Status" not in _call(store, "get_bucket_versioning"):
        return  # never versioned
    _, prefix = _bucket_and_prefix(store)
    more: dict[str, str] = {"Prefix": f"{prefix}/" if prefix else ""}
    while True:
        page = _call(store, "list_object_versions", **more)
        for one in page.get("Versions", ()):
            if not one["IsLatest"]:
                yield _Version(one["Key"], one["VersionId"], int(one["Size"]))
        for one in page.get("DeleteMarkers", ()):
            yield _Version(one["Key"], one["VersionId"], 0)
        if not page.get("IsTruncated"):
            return
        more["KeyMarker"] = page["NextKeyMarker"]
        more["VersionIdMarker"] = page["NextVersionIdMarker"]


def _bucket_and_prefix(store: ObjectStore) -> tuple[str, str]:
    parts = urlsplit(store.url)
    return parts.netloc, parts.path.strip("/")


def _call(store: ObjectStore, name: str, **arguments: Any) -> dict[str, Any]:
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, _ = _bucket_and_prefix(store)
    action = "delete" if name == "delete_objects" else "list"
    try:
        answer = getattr(_client(store.options), name)(Bucket=bucket, **arguments)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "unknown")
        message = f"cannot {action} the versions of {store.url!r}: {code}"
        raise StorageError(message, thing=store.url) from error
    except BotoCoreError as error:
        message = f"cannot {action} the versions of {store.url!r}: {error}"
        raise StoreUnavailable(message, thing=store.url) from error
    if failed := answer.get("Errors"):
        message = f"cannot delete {len(failed)} versions of {store.url!r}: {failed[0].get('Code')}"
        raise StorageError(message, thing=store.url)
    return dict(answer)


def _client(options: StoreOptions) -> "BaseClient":
    import boto3

    # Without keys boto3 finds the credentials itself, as it does for the store.
    return boto3.client(
        "s3",
        endpoint_url=options.endpoint_url,
        region_name=options.region,
        aws_access_key_id=options.access_key,
        aws_secret_access_key=options.secret_key,
    )
