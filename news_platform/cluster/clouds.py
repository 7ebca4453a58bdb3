"""The clients of dagster-aws and dagster-gcp, with the credentials and settings of the root.

An asset that asks for the resource `s3` or `gcs` gets one, over the store that the root is in. Each
library takes seconds to import, so the first run that asks for a client loads it.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from news_platform.setting_sections.platform import StorageSettings
from news_platform.settings import Settings


def cloud_resources(settings: Settings) -> Mapping[str, dg.ResourceDefinition]:
    """Return the resource of the cloud that the root is in; none for a local folder."""
    match settings.root.partition("://")[0]:
        case "s3":
            return {"s3": dg.ResourceDefinition(lambda _: s3_client(settings.storage))}
        case "gs":
            return {"gcs": dg.ResourceDefinition(lambda _: gcs_client(settings.storage))}
        case _:
            return {}


def s3_client(given: StorageSettings) -> Any:
    """Return boto3's client of the root's store."""
    from dagster_aws.s3 import S3Resource

    return S3Resource(
        endpoint_url=given.endpoint_url, use_ssl=not given.allow_http, **s3_session(given)
    ).get_client()


def s3_session(given: StorageSettings) -> dict[str, Any]:
    """Return the options of a session; without keys boto3 finds the credentials itself."""
    return {
        "aws_access_key_id": given.access_key,
        "aws_secret_access_key": given.secret_key,
        "region_name": given.region or os.environ.get("AWS_DEFAULT_REGION", "us-east-1"),
    }


def gcs_client(given: StorageSettings) -> Any:
    """Return Google's client of the root's store."""
    from dagster_gcp import GCSResource

    set_google_environment(given)
    return GCSResource().get_client()


def set_google_environment(given: StorageSettings) -> None:
    """Let Google's library find the key and the address of the settings: it reads only these."""
    if key := given.service_account_key:
        os.environ.setdefault("GOOGLE_APPLICATION_CREDENTIALS", _key_file(key))
    if given.gcs_base_url:
        os.environ.setdefault("STORAGE_EMULATOR_HOST", given.gcs_base_url)


def _key_file(key: str) -> str:
    """Return the path of a service account key, which may be given as its text."""
    if not key.lstrip().startswith("{"):
        return key
    handle, path = tempfile.mkstemp(suffix=".json")  # readable by this user alone
    os.close(handle)
    Path(path).write_text(key, encoding="utf-8")
    return path
