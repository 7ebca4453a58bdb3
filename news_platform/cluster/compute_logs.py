"""Keep the output of runs in an object store, so that it outlives the worker that ran them.

Dagster's own managers for S3 and Google Cloud Storage do the work. They take their keys from the
environment of the cloud's libraries; here they get those of the root.
"""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from dagster import Field, StringSource
from dagster._core.storage.compute_log_manager import ComputeLogManager
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from news_platform.cluster.clouds import s3_session, set_google_environment
from news_platform.errors import ConfigError
from news_platform.setting_sections.platform import StorageSettings
from news_platform.settings import load_settings

_UPLOAD_SECONDS = 30


class RootComputeLogManager(ComputeLogManager[Any], ConfigurableClass):
    """Opens the manager that the scheme of a URL names; there are no instances of this class."""

    @classmethod
    def config_type(cls) -> Mapping[str, Any]:
        """Return the fields of the section `config` in dagster.yaml."""
        return {"url": StringSource, "local_dir": Field(StringSource, is_required=False)}

    @classmethod
    def from_config_value(  # type: ignore[override]  # Dagster uses what it returns as it is
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> ComputeLogManager[Any]:
        """Return the manager of a dagster.yaml."""
        given, parts = load_settings(os.environ).storage, urlsplit(config_value["url"])
        shared = {
            "inst_data": inst_data,
            "local_dir": config_value.get("local_dir"),
            "bucket": parts.netloc,
            "prefix": parts.path.strip("/"),
            "upload_interval": _UPLOAD_SECONDS,
        }
        match parts.scheme:
            case "s3":
                return _s3_manager(given, shared)
            case "gs":
                return _gcs_manager(given, shared)
            case "" | "file":
                return LocalComputeLogManager(parts.path, inst_data=inst_data)
            case _:
                url = config_value["url"]
                raise ConfigError(
                    f"NEWS_PLATFORM_LOGS_URL={url!r}: expected s3://, gs:// or a path"
                )


def _s3_manager(given: StorageSettings, shared: Mapping[str, Any]) -> ComputeLogManager[Any]:
    import boto3
    from dagster_aws.s3 import S3ComputeLogManager

    boto3.setup_default_session(**s3_session(given))
    manager: ComputeLogManager[Any] = S3ComputeLogManager(
        **shared, endpoint_url=given.endpoint_url, use_ssl=not given.allow_http
    )
    return manager


def _gcs_manager(given: StorageSettings, shared: Mapping[str, Any]) -> ComputeLogManager[Any]:
    from dagster_gcp.gcs import GCSComputeLogManager

    set_google_environment(given)
    manager: ComputeLogManager[Any] = GCSComputeLogManager(**shared)
    return manager
