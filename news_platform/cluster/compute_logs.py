"""Keep the output of runs in an object store, so that it outlives the worker that ran them.

Dagster's own managers for S3 and Google Cloud Storage need a bucket, keys and an endpoint of their
own; this one uses those of the root.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from dagster import Field, StringSource
from dagster._core.storage.cloud_storage_compute_log_manager import (
    PollingComputeLogSubscriptionManager,
    TruncatingCloudStorageComputeLogManager,
)
from dagster._core.storage.compute_log_manager import CapturedLogSubscription, ComputeIOType
from dagster._core.storage.local_compute_log_manager import (
    IO_TYPE_EXTENSION,
    LocalComputeLogManager,
)
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from news_platform.resources import store_options
from news_platform.settings import load_settings
from news_platform.storage.objects.store import ObjectStore, open_store

_UPLOAD_SECONDS = 30
_PARTIAL = ".partial"


class StoreComputeLogManager(
    TruncatingCloudStorageComputeLogManager[Any],  # the instance is of no use here
    ConfigurableClass,
):
    """Write standard output and error of runs below a URL, and read them back for the UI."""

    def __init__(
        self,
        url: str,
        local_dir: str | None = None,
        upload_interval: int = _UPLOAD_SECONDS,
        inst_data: ConfigurableClassData | None = None,
    ) -> None:
        self._store = _open(url)
        self._local = LocalComputeLogManager(local_dir or tempfile.gettempdir())
        # Dagster's classes have no types.
        self._subscriptions = PollingComputeLogSubscriptionManager(self)  # type: ignore[no-untyped-call]
        self._upload_interval = upload_interval
        self._inst_data = inst_data
        super().__init__()  # type: ignore[no-untyped-call] # as above

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """Return the configuration that this was made from."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> Mapping[str, Any]:
        """Return the fields of the section `config` in dagster.yaml."""
        return {
            "url": StringSource,
            "local_dir": Field(StringSource, is_required=False),
            "upload_interval": Field(int, is_required=False, default_value=_UPLOAD_SECONDS),
        }

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> "StoreComputeLogManager":
        """Return the manager of a dagster.yaml."""
        return cls(inst_data=inst_data, **config_value)

    @property
    def local_manager(self) -> LocalComputeLogManager:
        """Return the manager that captures the output on this machine first."""
        return self._local

    @property
    def upload_interval(self) -> int | None:
        """Return the seconds between two uploads of a run that goes on."""
        return self._upload_interval or None

    def delete_logs(
        self, log_key: Sequence[str] | None = None, prefix: Sequence[str] | None = None
    ) -> None:
        """Delete the output of one log key, or of all below a prefix."""
        self._local.delete_logs(log_key=log_key, prefix=prefix)
        folder = "/".join(log_key[:-1] if log_key else prefix or ())
        wanted = f"{log_key[-1]}." if log_key else ""
        found = (info.path for info in self._store.list(folder))
        self._store.delete([path for path in found if path.split("/")[-1].startswith(wanted)])

    def download_url_for_type(self, log_key: Sequence[str], io_type: ComputeIOType) -> None:
        """Return None: the UI shows the text itself."""

    def display_path_for_type(self, log_key: Sequence[str], io_type: ComputeIOType) -> str:
        """Return where the output is stored."""
        return self._store.uri(_path(log_key, io_type))

    def cloud_storage_has_logs(
        self, log_key: Sequence[str], io_type: ComputeIOType, partial: bool = False
    ) -> bool:
        """Return whether the output was uploaded."""
        return self._store.exists(_path(log_key, io_type, partial=partial))

    def download_from_cloud_storage(
        self, log_key: Sequence[str], io_type: ComputeIOType, partial: bool = False
    ) -> None:
        """Copy the output to this machine, where the UI reads it."""
        local = self._local.get_captured_local_path(
            log_key, IO_TYPE_EXTENSION[io_type], partial=partial
        )
        os.makedirs(os.path.dirname(local), exist_ok=True)  # noqa: PTH103, PTH120 (Dagster's paths are texts)
        with open(local, "wb") as file:  # noqa: PTH123 (as above)
            file.write(self._store.read(_path(log_key, io_type, partial=partial)))

    def get_log_keys_for_log_key_prefix(
        self, log_key_prefix: Sequence[str], io_type: ComputeIOType
    ) -> Sequence[list[str]]:
        """Return the log keys below a prefix."""
        return list(self._keys_below(log_key_prefix, f".{IO_TYPE_EXTENSION[io_type]}"))

    def _keys_below(self, prefix: Sequence[str], ending: str) -> Iterator[list[str]]:
        for info in self._store.list("/".join(prefix)):
            if info.path.endswith(ending):
                yield [*prefix, info.path.split("/")[-1].removesuffix(ending)]

    def on_subscribe(self, subscription: CapturedLogSubscription) -> None:
        """Send new output to a viewer."""
        self._subscriptions.add_subscription(subscription)

    def on_unsubscribe(self, subscription: CapturedLogSubscription) -> None:
        """Send no more output to a viewer."""
        self._subscriptions.remove_subscription(subscription)

    def dispose(self) -> None:
        """Stop what runs beside the runs."""
        self._subscriptions.dispose()
        self._local.dispose()

    def _upload_file_obj(
        self,
        data: IO[bytes],
        log_key: Sequence[str],
        io_type: ComputeIOType,
        partial: bool = False,
    ) -> None:
        body = data.read()  # at most 50 MB: the base class cuts it
        if body or not partial:
            self._store.put(_path(log_key, io_type, partial=partial), body)


def _open(url: str) -> ObjectStore:
    return open_store(url, options=store_options(load_settings(os.environ)))


def _path(log_key: Sequence[str], io_type: ComputeIOType, *, partial: bool = False) -> str:
    ending = _PARTIAL if partial else ""
    return f"{'/'.join(log_key)}.{IO_TYPE_EXTENSION[io_type]}{ending}"
