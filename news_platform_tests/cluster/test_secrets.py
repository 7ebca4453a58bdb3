"""Planted secrets never appear in the metadata of assets."""

import pytest

from news_platform.definitions import build_definitions
from news_platform.resources import Resources
from news_platform.settings import Settings, load_settings
from news_platform_tests.emulators.redis import free_port

PLANTED = "planted-secret"


@pytest.fixture
def settings() -> Settings:
    port = free_port()
    return load_settings(
        {
            "NEWS_PLATFORM_ROOT": "s3://bucket/root",
            "NEWS_PLATFORM_S3_ENDPOINT": f"http://127.0.0.1:{port}",
            "NEWS_PLATFORM_S3_ACCESS_KEY": f"{PLANTED}-1",
            "NEWS_PLATFORM_S3_SECRET_KEY": f"{PLANTED}-2",
            "NEWS_PLATFORM_ALLOW_HTTP": "1",
            "NEWS_PLATFORM_LEDGER_URL": (
                f"postgresql+psycopg2://platform:{PLANTED}-3@127.0.0.1:{port}/ledger"
            ),
            "NEWS_PLATFORM_BROKER_URL": f"redis://:{PLANTED}-4@127.0.0.1:{port}/0",
            "NEWS_PLATFORM_DAGSTER_POSTGRES_URL": (
                f"postgresql+psycopg2://platform:{PLANTED}-5@127.0.0.1:{port}/dagster"
            ),
            "NEWS_PLATFORM_ALERT_WEBHOOK": f"https://hooks.example/{PLANTED}-6",
        }
    )


def test_no_asset_shows_a_secret_in_its_metadata(settings: Settings) -> None:
    definitions = build_definitions(Resources(settings))
    specs = definitions.resolve_all_asset_specs()
    assert specs
    assert PLANTED not in "".join(str((spec.metadata, spec.description)) for spec in specs)
    job = definitions.resolve_implicit_global_asset_job_def()
    assert PLANTED not in str(job.resource_defs)
