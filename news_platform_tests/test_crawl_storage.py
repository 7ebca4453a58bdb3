"""Root and crawl in two stores at once, each with its own endpoint and keys."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from news_platform.ccnews.pipeline import collect_day
from news_platform.errors import ConfigError
from news_platform.resources import Resources, collect_options, crawl_options, store_options
from news_platform.settings import load_settings
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.objects.store import StoreOptions, open_store
from news_platform_tests.ccnews.crawl import DAY, NOW, mixed_pages, warc_path, write_crawl
from news_platform_tests.emulators.fault_proxy import FaultProxy, fault_proxy
from news_platform_tests.emulators.gcs import service_account_key
from news_platform_tests.emulators.s3 import new_bucket, s3_process

CRAWL_KEYS = {
    "NEWS_PLATFORM_CRAWL_S3_ACCESS_KEY": "crawl-key",
    "NEWS_PLATFORM_CRAWL_S3_SECRET_KEY": "crawl-secret",
}


@pytest.fixture(scope="module")
def crawl_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Yield the URL and the bucket of a second S3 server that holds one day of a crawl."""
    folder = tmp_path_factory.mktemp("crawl")
    source = write_crawl(folder, {warc_path(DAY): mixed_pages()})
    with s3_process() as url:
        bucket = new_bucket(url)
        options = StoreOptions(endpoint_url=url, access_key="a", secret_key="b", allow_http=True)
        target = open_store(f"s3://{bucket}", options=options)
        for info in source.list():
            target.put(info.path, source.read(info.path))
        yield url, bucket


@pytest.fixture
def crawl_faults(crawl_server: tuple[str, str]) -> Iterator[tuple[FaultProxy, str]]:
    with fault_proxy(crawl_server[0]) as found:
        yield found


def _collect(environ: Mapping[str, str]) -> Resources:
    resources = Resources(load_settings({"NEWS_PLATFORM_ALLOW_HTTP": "1", **environ}))
    report = collect_day(
        DAY,
        crawl=resources.crawl.sources,
        root=resources.data_root.store,
        options=collect_options(resources.settings.ccnews),
        now=NOW,
        attempt="a-1",
    )
    assert (len(report.collected), report.failed) == (1, ())
    return resources


def _keys(proxy: FaultProxy) -> set[str]:
    sent = (request.headers["authorization"] for request in proxy.seen)
    return {text.partition("Credential=")[2].partition("/")[0] for text in sent}


@pytest.mark.parametrize("kind", ["s3", "gs"])
def test_a_day_goes_from_one_store_into_another_with_other_keys(
    kind: str,
    request: pytest.FixtureRequest,
    bucket: str,
    crawl_server: tuple[str, str],
    crawl_faults: tuple[FaultProxy, str],
) -> None:
    proxy, url = request.getfixturevalue(f"{kind}_faults")
    # The endpoint of S3 is set in both cases: Google must not be looked for there.
    root = {
        "NEWS_PLATFORM_ROOT": f"{kind}://{bucket}/root",
        "NEWS_PLATFORM_S3_ENDPOINT": url if kind == "s3" else "http://127.0.0.1:9",
        "NEWS_PLATFORM_S3_ACCESS_KEY": "root-key",
        "NEWS_PLATFORM_S3_SECRET_KEY": "root-secret",
        "NEWS_PLATFORM_GCS_BASE_URL": url,
        "NEWS_PLATFORM_GCS_SERVICE_ACCOUNT": service_account_key(url),
    }
    crawl = {
        "NEWS_PLATFORM_CRAWL_URL": f"s3://{crawl_server[1]}",
        "NEWS_PLATFORM_CRAWL_S3_ENDPOINT": crawl_faults[1],
        **CRAWL_KEYS,
    }
    resources = _collect(root | crawl)
    (marker,) = read_collected(resources.data_root.store, [DAY])
    assert marker.rows == len(mixed_pages())
    assert _keys(crawl_faults[0]) == {"crawl-key"}
    assert not [seen for seen in crawl_faults[0].seen if seen.method not in ("GET", "HEAD")]
    assert not [seen for seen in proxy.seen if "crawl-data/CC-NEWS" in seen.target]
    if kind == "s3":
        assert _keys(proxy) == {"root-key"}


ROOT_S3 = {
    "NEWS_PLATFORM_S3_ENDPOINT": "http://minio",
    "NEWS_PLATFORM_S3_REGION": "here",
    "NEWS_PLATFORM_S3_ACCESS_KEY": "root-key",
    "NEWS_PLATFORM_S3_SECRET_KEY": "root-secret",
}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, ("http://minio", "here", "root-key")),
        ({"NEWS_PLATFORM_CRAWL_S3_REGION": "us-east-1"}, (None, "us-east-1", None)),
        (CRAWL_KEYS, (None, None, "crawl-key")),
    ],
    ids=["as the root when nothing is set", "AWS by its region", "AWS by keys"],
)
def test_one_setting_of_the_crawl_parts_it_from_the_root(
    own: Mapping[str, str], expected: tuple[str | None, ...]
) -> None:
    options = crawl_options(load_settings({**ROOT_S3, **own}))
    assert (options.endpoint_url, options.region, options.access_key) == expected


def test_a_google_key_may_be_the_path_of_its_file(tmp_path: Path) -> None:
    text = service_account_key("http://gcs")
    (tmp_path / "key.json").write_text(text)
    for given in (text, str(tmp_path / "key.json")):
        options = store_options(load_settings({"NEWS_PLATFORM_GCS_SERVICE_ACCOUNT": given}))
        found = open_store("gs://b", options=options).polars_options()
        assert json.loads(found["google_service_account_key"]) == json.loads(text)


def test_a_google_key_that_cannot_be_read_stops_only_what_needs_it(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.json")
    settings = load_settings({"NEWS_PLATFORM_GCS_SERVICE_ACCOUNT": missing})
    for options in (store_options(settings), crawl_options(settings)):
        assert list(open_store(str(tmp_path), options=options).list("")) == []
        with pytest.raises(
            ConfigError, match="cannot read the Google service account key"
        ) as found:
            open_store("gs://b", options=options)
        # The value that is not a path may be the key itself.
        assert missing not in str(found.value) and "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("root", "address"),
    [
        ("s3://b", "http://me:Planted5ecret@host:port/"),
        ("s3://b", "http://[x"),
        ("gs://b", "raw"),
    ],
)
def test_an_endpoint_that_is_not_an_address_is_one_line(root: str, address: str) -> None:
    settings = load_settings(
        {
            **ROOT_S3,
            "NEWS_PLATFORM_S3_ENDPOINT": address,
            "NEWS_PLATFORM_GCS_BASE_URL": address,
            "NEWS_PLATFORM_GCS_SERVICE_ACCOUNT": service_account_key("http://gcs"),
        }
    )
    with pytest.raises(ConfigError, match="invalid address of an object store") as found:
        open_store(root, options=store_options(settings))
    assert "Planted" not in str(found.value)
