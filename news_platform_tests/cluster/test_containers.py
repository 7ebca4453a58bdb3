"""The Compose file under podman: each part is killed during a backfill, and the image upgraded."""

import subprocess
import sys

import pytest

from deploy.podman import missing_tools


@pytest.mark.soak
def test_ten_days_are_the_same_when_every_container_was_killed_and_upgraded() -> None:
    if lacking := missing_tools():
        pytest.skip(f"containers need {', '.join(lacking)}")
    command = (sys.executable, "-m", "news_platform_tests.cluster.container_faults")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("THE SAME: ")
