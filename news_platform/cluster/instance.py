"""Write the dagster.yaml of a container from deploy/dagster.yaml and the settings, then start it.

`python -m news_platform.cluster.instance deploy/dagster.yaml COMMAND…` starts every
process of docker-compose.yaml. Dagster reads the number of concurrent runs from the file alone, and
not from a variable.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from news_platform.errors import ConfigError, NewsPlatformError
from news_platform.setting_sections.platform import ClusterSettings
from news_platform.settings import load_settings


def instance_config(template: Mapping[str, Any], settings: ClusterSettings) -> dict[str, Any]:
    """Return the configuration of the Dagster instance with the numbers of the settings."""
    runs = dict(template["concurrency"]["runs"])
    slots = settings.max_concurrent_runs or runs["max_concurrent_runs"]
    runs["max_concurrent_runs"] = slots
    # A backfill leaves a slot for the runs of sensors and schedules.
    runs["tag_concurrency_limits"] = [
        {**limit, "limit": max(1, slots - 1)} for limit in runs["tag_concurrency_limits"]
    ]
    return {**template, "concurrency": {**template["concurrency"], "runs": runs}}


def write_config(template: Path, home: Path, settings: ClusterSettings) -> None:
    """Write $DAGSTER_HOME/dagster.yaml at once: a process beside this one may be reading it."""
    config = instance_config(yaml.safe_load(template.read_text()), settings)
    unfinished = home / f"dagster.yaml.{os.getpid()}"
    unfinished.write_text(yaml.safe_dump(config, sort_keys=False))
    unfinished.replace(home / "dagster.yaml")


def main(arguments: list[str]) -> None:
    """Write the configuration from the template that comes first, then become the command."""
    if len(arguments) < 2:
        raise ConfigError("expected a template and a command, such as `dagster-daemon run`")
    settings = load_settings(os.environ)
    if settings.dagster_home is None:
        raise ConfigError("DAGSTER_HOME is not set: set it to a folder that this process may write")
    template, *command = arguments
    write_config(Path(template), Path(settings.dagster_home), settings.cluster)
    os.execvp(command[0], command)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NewsPlatformError as error:
        sys.exit(f"error: {error}")
