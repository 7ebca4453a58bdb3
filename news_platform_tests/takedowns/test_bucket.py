"""A root in a bucket is cleaned there, and old versions of its objects are named or deleted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from news_platform.composition.takedown_parts import apply_root, versions_note
from news_platform.composition.takedown_verification import verify_root
from news_platform.datasets.corpus import CRAWL_ARTICLES
from news_platform.errors import StorageError
from news_platform.resources import Resources
from news_platform.settings import load_settings
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.objects.versions import count_old_versions, delete_old_versions
from news_platform_tests.corpus.pages import StoredPage, collect_pages
from news_platform_tests.search.articles import made_articles
from news_platform_tests.search.indexes import DAY, build_stale, write_day
from news_platform_tests.takedowns.asked import ask


@pytest.fixture
def s3_client(s3_server_url: str) -> Any:
    """Return a client that sees versions."""
    keys = {"aws_access_key_id": "test-key", "aws_secret_access_key": "test-secret"}
    return boto3.client("s3", endpoint_url=s3_server_url, region_name="us-east-1", **keys)


def _versioned(s3_client: Any, bucket: str) -> None:
    s3_client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


@pytest.fixture
def resources(s3_server_url: str, bucket: str, tmp_path: Path) -> Iterator[Resources]:
    opened = Resources(
        load_settings(
            {
                "NEWS_PLATFORM_ROOT": f"s3://{bucket}/root",
                "NEWS_PLATFORM_S3_ENDPOINT": s3_server_url,
                "NEWS_PLATFORM_S3_ACCESS_KEY": "test-key",
                "NEWS_PLATFORM_S3_SECRET_KEY": "test-secret",
                "NEWS_PLATFORM_ALLOW_HTTP": "1",
                "NEWS_PLATFORM_LEDGER_URL": f"sqlite:///{tmp_path}/ledger.sqlite",
            }
        )
    )
    yield opened
    opened.ledger.close()


def test_tables_and_indexes_in_a_versioned_bucket_are_cleaned(
    resources: Resources, bucket: str, s3_client: Any, tmp_path: Path
) -> None:
    _versioned(s3_client, bucket)
    store, articles = resources.data_root.store, made_articles(20, seed=1, days=1)
    gone = articles[3].canonical_url
    write_day(store, CRAWL_ARTICLES, articles, tmp_path / "scratch")
    build_stale(store)
    collect_pages(store, [StoredPage(one.canonical_url, "<p>x</p>") for one in articles], day=DAY)
    ask(store, "url", gone)
    assert {one.place.split("/")[0] for one in verify_root(resources).findings} == {
        "crawl_articles",
        "news",
        "search",
    }
    report = apply_root(resources)
    assert report.left == {} and report.removed["crawl_articles"].rows == 1
    assert report.removed["search_index"].rows == report.removed["raw_news"].rows == 1
    found = verify_root(resources)
    assert found.findings == () and found.rows > 19
    # The bucket still has what was replaced, and says so until it is deleted.
    assert "old versions" in report.notes[0] and report.notes == versions_note(store)
    assert apply_root(resources, delete_versions=True).notes[0].endswith("old versions deleted")
    assert versions_note(store) == () and count_old_versions(store).count == 0
    listed = s3_client.list_object_versions(Bucket=bucket)
    assert "DeleteMarkers" not in listed and all(one["IsLatest"] for one in listed["Versions"])
    assert verify_root(resources).files == found.files


def test_only_versions_under_the_root_are_deleted(
    s3_store: ObjectStore, bucket: str, s3_client: Any
) -> None:
    _versioned(s3_client, bucket)
    for body in (b"1", b"2"):
        s3_store.put("a", body)
        s3_client.put_object(Bucket=bucket, Key="roots/a", Body=body)
    s3_store.delete(["a"])
    assert count_old_versions(s3_store).count == 3
    assert delete_old_versions(s3_store).size_bytes == 2
    left = s3_client.list_object_versions(Bucket=bucket)
    assert {one["Key"] for one in left["Versions"]} == {"roots/a"} and len(left["Versions"]) == 2


def test_a_store_without_versions_has_nothing_to_say(
    s3_store: ObjectStore, local_store: ObjectStore
) -> None:
    s3_store.put("a", b"1")
    s3_store.put("a", b"2")
    assert versions_note(s3_store) == () and versions_note(local_store) == ()
    assert delete_old_versions(local_store).count == 0


def test_a_bucket_that_does_not_answer_is_said_to_be_unknown(s3_server_url: str) -> None:
    keys = StoreOptions(endpoint_url=s3_server_url, access_key="k", secret_key="s", allow_http=True)
    missing = open_store("s3://no-such-bucket/root", options=keys)
    with pytest.raises(StorageError, match="NoSuchBucket"):
        count_old_versions(missing)
    assert "unknown" in versions_note(missing)[0]
