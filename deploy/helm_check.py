"""Render kubernetes/values.yaml with Dagster's Helm chart and validate every object it makes.

`make helm-check CHART=FOLDER`, or the chart below NEWS_PLATFORM_BENCH_DATA.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import yaml

from news_platform.settings import load_settings

HERE = Path(__file__).parent
VALUES = HERE / "kubernetes/values.yaml"
# The oldest version that the chart's users still run; newer ones accept what it accepts.
KUBERNETES = "1.31"


def render(chart: Path, *changes: str) -> list[dict[str, Any]]:
    """Return the objects that the chart makes of our values, with `name=value` changes."""
    helm = shutil.which("helm", path=str(Path(sys.executable).parent)) or "helm"
    # The chart's own schema refers to addresses on the web; strict validation below replaces it.
    words = ("template", "news", str(chart), "-f", str(VALUES), "-n", "news-platform")
    more = [word for change in changes for word in ("--set", change)]
    done = subprocess.run(
        [helm, *words, *more, "--skip-schema-validation"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"error: helm cannot render the values: {done.stderr.strip()}")
    return [found for found in yaml.safe_load_all(done.stdout) if found]


def unknown_values(chart: Path) -> list[str]:
    """Return the values of ours that the chart does not know; Helm would ignore them silently."""
    known = yaml.safe_load((chart / "values.yaml").read_text())
    return sorted(_unknown(yaml.safe_load(VALUES.read_text()), known, ""))


def _unknown(given: Mapping[str, Any], known: Mapping[str, Any], place: str) -> Iterator[str]:
    for name, value in given.items():
        if name not in known:
            # The chart reads these, but its values.yaml does not list them.
            if name not in ("maxRuntimeSeconds", "cancelTimeoutSeconds", "httpHeaders"):
                yield f"{place}{name}"
        elif isinstance(value, Mapping) and isinstance(known[name], Mapping) and known[name]:
            yield from _unknown(value, known[name], f"{place}{name}.")


def instance_of(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the dagster.yaml among the objects."""
    files = (found["data"]["dagster.yaml"] for found in objects if _has_instance(found))
    config: dict[str, Any] = yaml.safe_load(next(files))
    return config


def _has_instance(found: Mapping[str, Any]) -> bool:
    return found["kind"] == "ConfigMap" and "dagster.yaml" in (found.get("data") or {})


def check(chart: Path) -> list[str]:
    """Return what is wrong with the values."""
    problems = [f"the chart has no value {name!r}" for name in unknown_values(chart)]
    for found in render(chart):
        try:
            kubernetes_validate.validate(found, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            problems.append(f"{found['kind']} {found['metadata']['name']}: {error.message}")
    return problems


def main(arguments: list[str]) -> None:
    """Print what is wrong, and fail if anything is."""
    data = load_settings(os.environ).bench_data
    given = [*arguments, *([f"{data}/helm/dagster"] if data else [])]
    if not given or not (Path(given[0]) / "Chart.yaml").is_file():
        click.echo("SKIPPED: helm-check needs Dagster's Helm chart: make helm-check CHART=FOLDER")
        return
    problems = check(Path(given[0]))
    click.echo("\n".join(problems) or "helm-check: all objects are valid")
    if problems:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
