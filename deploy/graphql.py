"""Launch backfills and runs on a Dagster webserver by GraphQL, and wait until they end."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from news_platform.errors import NewsPlatformError

_BACKFILL = """mutation($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_RUN = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_RUNS = """query($filter: RunsFilter) { runsOrError(filter: $filter) { ... on Runs { results {
  runId status assetSelection { path } tags { key value } } } } }"""
_TERMINATE = """mutation($id: String!) { terminateRun(runId: $id) {
  __typename ... on TerminateRunFailure { message } ... on PythonError { message } } }"""
_ADD_PARTITION = """mutation($repository: RepositorySelector!, $name: String!, $key: String!) {
  addDynamicPartition(
    repositorySelector: $repository, partitionsDefName: $name, partitionKey: $key
  ) { __typename ... on UnauthorizedError { message } ... on PythonError { message } } }"""
_STATUS = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status } } }"""
_LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries { loadStatus
  locationOrLoadError { ... on PythonError { message } } } } } }"""
_REPOSITORY = "__repository__"
# How long one response, and loading the code, may take on a busy machine.
_ANSWER_SECONDS, _START_SECONDS = 60.0, 300.0


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run as the webserver reports it."""

    run_id: str
    status: str
    asset: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Dagster:
    """One webserver and its code location."""

    url: str
    location: str

    def query(self, text: str, **variables: Any) -> Any:
        """Send a query and return the data of its response; raise if the response is an error."""
        body = json.dumps({"query": text, "variables": variables}).encode()
        request = urllib.request.Request(
            f"{self.url}/graphql", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
                document = json.load(answer)
        except urllib.error.HTTPError as error:
            document = json.load(error)  # the reason is in the body
        if "errors" in document:
            raise NewsPlatformError(
                f"Dagster rejected the query: {document['errors'][0]['message']}"
            )
        return document["data"]

    def wait_until_up(self) -> None:
        """Wait until the webserver responds and has loaded the code."""
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_up():
            if time.monotonic() > deadline:
                raise NewsPlatformError(f"no webserver at {self.url} after {_START_SECONDS:.0f} s")
            time.sleep(1)

    def launch_backfill(
        self, asset: str, keys: Sequence[str], *, with_assets: Sequence[str] = ()
    ) -> str:
        """Launch a backfill of some partitions, also of assets that follow, and return its id."""
        selection = [{"path": [name]} for name in (asset, *with_assets)]
        params = {"assetSelection": selection, "partitionNames": list(keys)}
        answer = self.query(_BACKFILL, params=params)["launchPartitionBackfill"]
        if "backfillId" not in answer:
            raise NewsPlatformError(f"cannot backfill {asset}: {answer}", thing=asset)
        return str(answer["backfillId"])

    def wait_for_backfill(self, backfill_id: str) -> None:
        """Wait until all runs of a backfill have succeeded; raise if one fails for good."""
        self._wait(
            lambda: self._backfill_status(backfill_id),
            what=f"backfill {backfill_id}",
            is_over=lambda: self._has_only_successes(backfill_id),
        )

    def add_partitions(self, name: str, keys: Sequence[str]) -> None:
        """Add keys to the dynamic partitions of this name; those that it has stay."""
        repository = {
            "repositoryName": _REPOSITORY,
            "repositoryLocationName": self.location,
        }
        for key in keys:
            answer = self.query(_ADD_PARTITION, repository=repository, name=name, key=key)
            kind = answer["addDynamicPartition"]["__typename"]
            if kind not in ("AddDynamicPartitionSuccess", "DuplicateDynamicPartitionError"):
                raise NewsPlatformError(f"cannot add partition {key!r}: {answer}", thing=key)

    def wait_for_runs(self, run_ids: Sequence[str]) -> None:
        """Wait until all of these runs have succeeded; raise if one fails for good."""
        for run_id in run_ids:
            self._wait(partial(self._run_status, run_id), what=f"run {run_id}")

    def launch(self, asset: str, **tags: str) -> str:
        """Launch one run of an asset and return its id; a partition is given as a tag."""
        selector = {
            "repositoryLocationName": self.location,
            "repositoryName": _REPOSITORY,
            "jobName": "__ASSET_JOB",
            "assetSelection": [{"path": [asset]}],
        }
        metadata = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
        params = {"selector": selector, "mode": "default", "runConfigData": {}}
        params["executionMetadata"] = metadata
        answer = self.query(_RUN, params=params)["launchRun"]
        if "run" not in answer:
            raise NewsPlatformError(f"cannot launch {asset}: {answer}", thing=asset)
        return str(answer["run"]["runId"])

    def terminate(self, run_id: str) -> None:
        """End a run that is under way, as the button in the UI does."""
        answer = self.query(_TERMINATE, id=run_id)["terminateRun"]
        if answer["__typename"] != "TerminateRunSuccess":
            raise NewsPlatformError(f"cannot terminate run {run_id}: {answer}", thing=run_id)

    def runs(self, **run_filter: Any) -> list[RunInfo]:
        """Return runs, newest first."""
        found = self.query(_RUNS, filter=run_filter)["runsOrError"]["results"]
        return [_run_info(item) for item in found]

    def _backfill_status(self, backfill_id: str) -> str:
        status: str = self.query(_STATUS, id=backfill_id)["partitionBackfillOrError"]["status"]
        return status

    def _run_status(self, run_id: str) -> str:
        return self.runs(runIds=[run_id])[0].status

    def _has_only_successes(self, backfill_id: str) -> bool:
        runs = self.runs(tags=[{"key": "dagster/backfill", "value": backfill_id}])
        return bool(runs) and all(run.status == "SUCCESS" for run in runs)

    def _wait(
        self, status: Callable[[], str], *, what: str, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        while (found := status()) not in ("COMPLETED_SUCCESS", "SUCCESS"):
            if found.startswith(("COMPLETED", "FAIL", "CANCEL")):
                raise NewsPlatformError(f"the {what} ended as {found}")
            if is_over():
                return
            time.sleep(1)

    def _is_up(self) -> bool:
        try:
            entries = self.query(_LOCATIONS)["workspaceOrError"]["locationEntries"]
        except (urllib.error.URLError, ConnectionError):
            return False
        for entry in entries:
            error = (entry["locationOrLoadError"] or {}).get("message")
            if error:
                raise NewsPlatformError(f"Dagster cannot load the code: {error.strip()}")
        return all(entry["loadStatus"] == "LOADED" for entry in entries)


def _run_info(item: Mapping[str, Any]) -> RunInfo:
    assets = ["/".join(key["path"]) for key in item["assetSelection"] or ()]
    tags = {tag["key"]: tag["value"] for tag in item["tags"]}
    return RunInfo(item["runId"], item["status"], ",".join(assets), tags)
