"""Secrets in every setting stay out of what real Dagster processes show: GraphQL, logs and ps."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from news_platform_tests.defs.over import resumed
from news_platform_tests.emulators.refusing import refusing_server
from news_platform_tests.servers.dagster_ui import DagsterUi, running_ui
from news_platform_tests.test_planted_secrets import PLANTED, SECRETS, planted_environment

RUN_SECONDS = 180
_LAUNCH = """mutation Launch($params: ExecutionParams!) { launchRun(executionParams: $params) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_STATUS = "query Status($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
# What the UI's pages show of a run, of the code location and of the instance.
_RUN = """query Run($id: ID!) {
  runOrError(runId: $id) { ... on Run {
    runConfigYaml tags { key value } stepStats { stepKey status } executionPlan { steps { key } }
    eventConnection { events { __typename
      ... on MessageEvent { message level stepKey }
      ... on ExecutionStepFailureEvent { error { message stack causes { message stack } } }
      ... on RunFailureEvent { error { message stack causes { message stack } } }
      ... on LogsCapturedEvent { fileKey } } } } }
  logsForRun(runId: $id) { __typename } }"""
_LOGS = """query Logs($key: [String!]!) { capturedLogs(logKey: $key) { stdout stderr } }"""
_EVERYTHING = """{
  instance { info hasInfo
    daemonHealth { allDaemonStatuses { daemonType lastHeartbeatErrors { message stack } } } }
  workspaceOrError { ... on Workspace { locationEntries { name displayMetadata { key value }
    locationOrLoadError { __typename ... on PythonError { message stack } } } } }
  assetNodes { assetKey { path } description computeKind opVersion
    metadataEntries { __typename label description ... on TextMetadataEntry { text }
      ... on JsonMetadataEntry { jsonString } ... on UrlMetadataEntry { url }
      ... on PathMetadataEntry { path } } }
  repositoriesOrError { ... on RepositoryConnection { nodes { name
    allTopLevelResourceDetails { name description configFields { name defaultValueAsJson }
      configuredValues { key value } }
    sensors { name description sensorState { ticks(limit: 5) { status skipReason
      error { message stack causes { message stack } } } } }
    schedules { name cronSchedule }
    jobs { name description tags { key value } } } } } }"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield an environment with a secret in every setting that can hold one."""
    with refusing_server() as address:
        environ = planted_environment(address, tmp_path_factory.mktemp("planted"))
        resumed(environ["NEWS_PLATFORM_ROOT"])  # a new root starts paused: no sensor would tick
        yield {**{name: f"{PLANTED}-{name}" for name in SECRETS}, **environ}


@pytest.fixture(scope="module")
def ui(planted: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagsterUi]:
    """Run the webserver and the daemon in that environment."""
    with running_ui(tmp_path_factory.mktemp("home"), planted) as started:
        yield started


def _commands(home: Path) -> set[str]:
    """Return the command lines of all processes that belong to this Dagster."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"DAGSTER_HOME={home}".encode() in (folder / "environ").read_bytes():
                found.add((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it ended, or belongs to someone else
            continue
    return found


def _fail(ui: DagsterUi, asset: str) -> tuple[str, set[str]]:
    """Launch a run that fails, and return its id and the command lines seen until it ended."""
    where = {"repositoryLocationName": "news_platform", "repositoryName": "__repository__"}
    selector = {**where, "jobName": "__ASSET_JOB", "assetSelection": [{"path": [asset]}]}
    launched: Any = ui.query(_LAUNCH, params={"selector": selector, "mode": "default"})
    run_id = launched["launchRun"]["run"]["runId"]
    commands, deadline = set(), time.monotonic() + RUN_SECONDS
    while time.monotonic() < deadline:
        commands |= _commands(ui.home)
        status: Any = ui.query(_STATUS, id=run_id)
        if status["runOrError"]["status"] in ("FAILURE", "SUCCESS", "CANCELED"):
            assert status["runOrError"]["status"] == "FAILURE"
            return run_id, commands
        time.sleep(0.2)
    raise AssertionError(f"the run of {asset!r} did not end within {RUN_SECONDS} s")


def _with_refused_ticks(ui: DagsterUi) -> dict[str, object]:
    """Return all that the UI shows beside runs, once a tick says that the crawl refused it."""
    deadline = time.monotonic() + RUN_SECONDS
    while "cannot read what is stale" not in str(shown := ui.query(_EVERYTHING)):
        assert time.monotonic() < deadline, "no tick was refused"
        time.sleep(0.5)
    return shown


def test_a_failed_run_shows_no_secret_anywhere(ui: DagsterUi, planted: dict[str, str]) -> None:
    assert {name for name in SECRETS if PLANTED in planted[name]} == set(SECRETS)
    run_id, commands = _fail(ui, "feeds")
    shown: Any = ui.query(_RUN, id=run_id)
    events = shown["runOrError"]["eventConnection"]["events"]
    assert any(event["__typename"] == "ExecutionStepFailureEvent" for event in events)
    keys = [event["fileKey"] for event in events if event["__typename"] == "LogsCapturedEvent"]
    logs = [ui.query(_LOGS, key=[run_id, "compute_logs", key]) for key in keys]
    assert PLANTED not in str((shown, logs))
    assert PLANTED not in str(_with_refused_ticks(ui))
    # Dagster starts a run as a child of its code server.
    kinds = ("services.webserver", "dagster._daemon", "api grpc", "multiprocessing.spawn")
    missing = [kind for kind in kinds if not any(kind in command for command in commands)]
    assert missing == [], commands
    assert PLANTED not in str(commands)
    files = [path for path in ui.home.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert [path for path in files if PLANTED.encode() in path.read_bytes()] == []
