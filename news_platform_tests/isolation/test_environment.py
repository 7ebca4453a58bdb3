"""Workers parse what strangers wrote, so they know no secret of our environment."""

from pathlib import Path

import pytest

from news_platform.isolation.pool import Done, Pool
from news_platform.isolation.worker import worker_environment
from news_platform.settings import setting_infos

ACT = "news_platform_tests.isolation.targets:act"
PLANTED = "planted-secret"
# What cloud libraries, databases, CI systems and people put into environments.
FOREIGN = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HTTPS_PROXY",
    "PGPASSWORD",
    "DAGSTER_HOME",
    "MY_OWN_SECRET",
)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a secret in every setting and in the usual places of others."""
    for name in (*(info.env for info in setting_infos()), *FOREIGN):
        monkeypatch.setenv(name, f"{PLANTED}-{name}")


def _seen(*variables: str) -> tuple[dict[str, str], bytes, bytes]:
    """Return a worker's variables, its /proc/PID/environ and its command line."""
    with Pool(ACT, workers=1, deadline_seconds=20.0, variables=variables) as pool:
        outcome = pool.submit(("environment",)).result()
        assert isinstance(outcome, Done)
        pid, environ = outcome.value
        proc = Path(f"/proc/{pid}")
        return environ, (proc / "environ").read_bytes(), (proc / "cmdline").read_bytes()


@pytest.mark.usefixtures("planted")
def test_a_worker_starts_without_our_secrets() -> None:
    environ, proc_environ, command = _seen()
    assert PLANTED not in str(environ)
    assert PLANTED.encode() not in proc_environ + command
    assert b"PATH=" in proc_environ


@pytest.mark.usefixtures("planted")
def test_a_variable_that_a_target_needs_is_not_shown_in_proc() -> None:
    environ, proc_environ, command = _seen("AWS_*")
    shown = {name for name, value in environ.items() if PLANTED in value}
    assert shown == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    assert PLANTED.encode() not in proc_environ + command


def test_no_setting_is_allowed_by_the_list() -> None:
    every = {info.env: "x" for info in setting_infos()}
    assert len(every) > 50
    assert worker_environment(every) == {}
