"""Planted secrets never appear in output, logs or recorded runs, whatever fails.

The cases are generated from the settings model: a new secret, or a new setting that may hold a URL
with credentials, is covered as soon as it exists.
"""

import random
import resource
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg
import pytest

from news_platform.cli import main as command_line
from news_platform.definitions import build_definitions
from news_platform.errors import ConfigError, redacted
from news_platform.resources import Resources
from news_platform.setting_sections.fields import Section
from news_platform.setting_sections.platform import GeneralSettings
from news_platform.settings import Settings, environment_secrets, load_settings
from news_platform.storage.objects.store import StoreOptions, open_store
from news_platform_tests.emulators.gcs import service_account_key
from news_platform_tests.emulators.refusing import refusing_server

PLANTED = "Planted5ecret"
COMMANDS = (
    ["rss", "status"],
    ["rss", "sync"],
    ["rss", "poll"],
    ["ccnews", "list", "--month", "2025-11"],
    ["store", "stats"],
    ["domains", "status"],
    ["sql", "select count(*) from raw_news"],
)
# {0} is the address of a server that refuses everything; `raw` is no URL at all.
FORMS = {
    "raw": PLANTED,
    "lines": f"-----BEGIN PRIVATE KEY-----\n{PLANTED}\n",
    "json": f'{{"type": "service_account", "private_key": "{PLANTED}", "token_uri": "http://{{0}}"}}',
    "broken json": f'{{"private_key": "{PLANTED}"',
    "path": f"/nowhere/{PLANTED}/key.json",
    "postgres": f"postgresql+psycopg2://me:{PLANTED}@{{0}}/db?connect_timeout=2",
    "postgres option": f"postgresql+psycopg2://{{0}}/db?connect_timeout=2&password={PLANTED}",
    "unknown scheme": f"mysql://me:{PLANTED}@{{0}}/db",
    "sqlite option": f"sqlite:////proc/nowhere/x.sqlite?password={PLANTED}",
    "http": f"http://me:{PLANTED}@{{0}}/x",
    "http token": f"http://{{0}}/x?token={PLANTED}",
    "no port": f"http://me:{PLANTED}@127.0.0.1:port/x",
    "s3": f"s3://me:{PLANTED}@bucket/x",
    "gs": f"gs://me:{PLANTED}@bucket/x",
    "redis": f"redis://:{PLANTED}@{{0}}/0",
    "scheme": f"nonsense://me:{PLANTED}@{{0}}/x",
}
# Keeps the cloud libraries from asking the network for credentials.
_OFFLINE = {"PATH": "/usr/bin", "NO_GCE_CHECK": "true", "AWS_EC2_METADATA_DISABLED": "true"}
# A value that is no secret by itself may still hold a URL with one.
URL_FORMS = [name for name, form in FORMS.items() if "://me:" in form or "?" in form]


Streams = tuple[pytest.MonkeyPatch, pytest.CaptureFixture[str], pytest.LogCaptureFixture]


SECTIONS: list[type[Section]] = [
    GeneralSettings,
    *(
        item.annotation
        for item in Settings.model_fields.values()
        if isinstance(item.annotation, type) and issubclass(item.annotation, Section)
    ),
]
FIELDS = [item for section in SECTIONS for item in section.model_fields.values()]
SECRETS = [str(item.validation_alias) for item in FIELDS if not item.repr]
OTHERS = [str(item.validation_alias) for item in FIELDS if item.repr]
SECRET_CASES = [(name, form) for name in SECRETS for form in FORMS]
OTHER_CASES = [(name, form) for name in OTHERS for form in URL_FORMS]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Run the refusing server and return its host and port."""
    with refusing_server() as found:
        yield found


def _bases(address: str, folder: Path) -> dict[str, dict[str, str]]:
    """Return environments in which every resource is used: a local, an S3 and a Google root."""
    local = {
        "NEWS_PLATFORM_ROOT": str(folder / "root"),
        "NEWS_PLATFORM_CRAWL_URL": f"http://{address}/crawl",
        "NEWS_PLATFORM_ALLOW_HTTP": "1",
        "NEWS_PLATFORM_S3_ENDPOINT": f"http://{address}",
        "NEWS_PLATFORM_S3_ACCESS_KEY": "key",
        "NEWS_PLATFORM_S3_SECRET_KEY": "secret-key",
        "NEWS_PLATFORM_SHEETS_ENDPOINT": f"http://{address}",
        "NEWS_PLATFORM_GCS_SERVICE_ACCOUNT": service_account_key(f"http://{address}"),
        "GOOGLE_SERVICE_ACCOUNT_JSON": "{}",
        "SPREADSHEET_TITLE": "News",
        "NEWS_PLATFORM_LEDGER_URL": f"sqlite:///{folder}/ledger.sqlite",
    }
    return {
        "local": local,
        "s3": {**local, "NEWS_PLATFORM_ROOT": "s3://bucket/root"},
        "gs": {**local, "NEWS_PLATFORM_ROOT": "gs://bucket/root"},
    }


def _run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["news-platform", *words])
    try:
        sys.exit(command_line.run_command())
    except SystemExit:
        return


def _check(cases: list[tuple[str, str]], address: str, tmp_path: Path, streams: Streams) -> None:
    monkeypatch, capture, logs = streams
    for number, (variable, form) in enumerate(cases):
        bases = _bases(address, tmp_path / str(number))
        kind = list(bases)[number % len(bases)]
        environ = {**bases[kind], variable: FORMS[form].replace("{0}", address)}
        with monkeypatch.context() as patch:
            patch.setattr("os.environ", {**_OFFLINE, "HOME": str(tmp_path), **environ})
            for words in (COMMANDS[number % len(COMMANDS)], COMMANDS[(number + 3) % len(COMMANDS)]):
                _run(words, patch)
                printed = capture.readouterr()
                shown = f"{printed.out}{printed.err}{logs.text}"
                assert PLANTED not in shown, (variable, form, kind, words, shown)
                assert "Traceback" not in shown, (variable, form, kind, words, shown)


@pytest.fixture
def streams(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Streams:
    return monkeypatch, capsys, caplog


def test_no_command_shows_a_secret(address: str, tmp_path: Path, streams: Streams) -> None:
    chance = random.Random(14)
    cases = [*chance.sample(SECRET_CASES, 25), *chance.sample(OTHER_CASES, 15)]
    _check(cases, address, tmp_path, streams)


@pytest.mark.soak
def test_no_command_shows_any_secret(address: str, tmp_path: Path, streams: Streams) -> None:
    _check([*SECRET_CASES, *OTHER_CASES], address, tmp_path, streams)


def test_the_model_names_its_secrets() -> None:
    assert {"NEWS_PLATFORM_LEDGER_URL", "GOOGLE_SERVICE_ACCOUNT_JSON"} <= set(SECRETS)
    suspicious = ("KEY", "SECRET", "TOKEN", "PASSWORD", "ACCOUNT", "WEBHOOK", "BROKER")
    assert [name for name in OTHERS if any(word in name for word in suspicious)] == []


@pytest.mark.parametrize("form", FORMS)
def test_every_part_of_a_secret_is_known(form: str) -> None:
    value = FORMS[form].replace("{0}", "127.0.0.1:9")
    for variable in SECRETS:
        known = environment_secrets({variable: value})
        assert value in known, variable
        assert PLANTED not in redacted(f"failed on {value}, twice", known), variable
    if form in URL_FORMS:
        error = ConfigError(f"cannot open {value!r}: it is away", thing=value)
        assert PLANTED not in f"{error} {error!r} {error.thing}"


def test_no_cause_of_a_store_error_shows_credentials(address: str) -> None:
    store = open_store(f"http://me:{PLANTED}@{address}/x", options=StoreOptions(allow_http=True))
    with pytest.raises(ConfigError) as found:
        store.head("file")
    shown = "".join(traceback.format_exception(found.value))
    assert "PermissionDenied" in shown and PLANTED not in shown


def planted_environment(address: str, folder: Path, *, kind: str = "local") -> Mapping[str, str]:
    """Return an environment whose secrets are planted and whose resources all refuse us."""
    base = _bases(address, folder)[kind]
    return {
        **base,
        "NEWS_PLATFORM_S3_ACCESS_KEY": f"{PLANTED}-1",
        "NEWS_PLATFORM_S3_SECRET_KEY": f"{PLANTED}-2",
        "NEWS_PLATFORM_GCS_SERVICE_ACCOUNT": FORMS["json"].replace("{0}", address),
        "NEWS_PLATFORM_LEDGER_URL": FORMS["postgres option"].replace("{0}", address),
        "NEWS_PLATFORM_CRAWL_URL": FORMS["http"].replace("{0}", address),
        "NEWS_PLATFORM_BROKER_URL": FORMS["redis"].replace("{0}", address),
        "NEWS_PLATFORM_ALERT_WEBHOOK": f"http://{address}/{PLANTED}",
        "GOOGLE_SERVICE_ACCOUNT_JSON": FORMS["lines"],
    }


@pytest.mark.parametrize("kind", ["local", "s3", "gs"])
def test_no_failed_run_records_a_secret(kind: str, address: str, tmp_path: Path) -> None:
    settings = load_settings(planted_environment(address, tmp_path, kind=kind))
    job = build_definitions(Resources(settings)).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        for asset in ("feeds", "pending_articles", "article_sheets", "domain_catalog"):
            result = job.execute_in_process(
                asset_selection=[dg.AssetKey(asset)], instance=instance, raise_on_error=False
            )
            shown = "".join(str(entry) for entry in instance.all_logs(result.run_id))
            assert "of run for" in shown
            assert PLANTED not in shown, asset


@pytest.mark.parametrize(
    "start",
    [
        "import atexit, sys; from news_platform.cli.main import run; sys.argv[1:] = ['--version']\n"
        "atexit.register(lambda: print(resource.getrlimit(resource.RLIMIT_CORE)[0])); run()",
        "import news_platform.definitions; print(resource.getrlimit(resource.RLIMIT_CORE)[0])",
    ],
    ids=["command line", "definitions"],
)
def test_a_crash_leaves_no_core_file(start: str, tmp_path: Path) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    if most == 0:
        pytest.skip("this machine forbids core files, so nothing would show that we do")
    raised = f"import resource; resource.setrlimit(resource.RLIMIT_CORE, ({most}, {most}))\n{start}"
    environ = {"PATH": "/usr/bin", "NEWS_PLATFORM_ROOT": str(tmp_path)}
    command = [sys.executable, "-c", raised]
    found = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "0"
