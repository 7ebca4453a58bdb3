"""Every dataset obeys takedowns: a covered row is found, removed and verified, and stays away.

The cases come from the declarations: a dataset that is added is tested without a line here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from news_platform.composition.engines import open_dataset
from news_platform.composition.takedown_parts import all_parts, apply_root
from news_platform.composition.takedown_verification import verify_root
from news_platform.datasets.dataset import THIRD_PARTY_ROLES, Dataset, Role
from news_platform.datasets.registry import DATASETS
from news_platform.datasets.takedowns import TakedownRequest
from news_platform.resources import Resources
from news_platform.storage.engines import DatasetEngine, FileEngine
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import FoundPlaces, find_places
from news_platform.takedowns.requests import add_request
from news_platform.takedowns.rows import ADDRESSES, iter_documents, stated_fields
from news_platform_tests.servers.demo import Demo
from news_platform_tests.takedowns.asked import asked
from news_platform_tests.takedowns.sample_root import SampleRoot

STORED = [one for one in DATASETS.values() if one.removal != "never" and one.place.engine != "view"]
# The tables of the store have a row per record, its domain and its address.
PARTS = [one for one in STORED if not (one.written_by and one.place.engine == "store")]
# They have no address of their own, and go with the dataset that writes them or is shown in them.
WITHOUT_ADDRESS = {
    "cluster_bands": "near_duplicates",
    "cluster_sketches": "near_duplicates",
    "stories": "story_members",
    "article_sheets": "ledger",
    # Of the demo's sites, none changes its policies.
    "ai_policy_changes": "domain_surveys",
}
_KINDS = {Role.url: "url", Role.domain: "domain", Role.host: "domain"}
_URLS, _DOMAINS = ("url", "uri"), ("domain",)


@dataclass(frozen=True, slots=True)
class Served:
    """The requests that were drawn from datasets, and what was found before and after."""

    root: SampleRoot
    requests: Mapping[str, TakedownRequest]
    before: FoundPlaces
    after: FoundPlaces
    findings: tuple[object, ...]


def _drawn(engine: DatasetEngine) -> TakedownRequest | None:
    """Return a request for something that the dataset holds, by the roles of its columns."""
    if isinstance(engine, FileEngine) and engine.dataset.place.engine == "files":
        return next(_in_files(engine), None)
    rows = engine.scan().collect()
    names = {column.name: column.role for column in engine.dataset.all_columns}
    names = {name: names.get(name, _role(name)) for name in rows.columns}
    for role, kind in _KINDS.items():
        for name in (name for name, found in names.items() if found is role):
            for value in rows[name].drop_nulls():
                natural = ".".join(reversed(value.split("."))) if role is Role.host else value
                return asked(kind, natural)
    return None


def _role(name: str) -> Role:
    return Role.url if name in _URLS else Role.domain if name in _DOMAINS else Role.fact


def _in_files(engine: FileEngine) -> Iterator[TakedownRequest]:
    for infos in engine.files().values():
        for info in infos:
            values = engine.dataset.place.parse(info.path) or {}
            if "domain" in values:
                yield asked("domain", values["domain"])
            for document in iter_documents(engine.store.read(info.path)):
                fields = stated_fields(document)
                yield from (asked("url", text) for name, text in fields if name in ADDRESSES)


def _found(resources: Resources, requests: Mapping[str, TakedownRequest]) -> FoundPlaces:
    found = find_places(all_parts(resources), Takedowns.of(requests.values()))
    # A unit without rows is only looked at again, such as an index with an older build.
    return {dataset: places for dataset, places in found.items() if sum(places.values())}


@pytest.fixture(scope="module")
def served(finished_demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """Take down something of every dataset of a demo."""
    folder: Path = tmp_path_factory.mktemp("served") / "copy"
    root = SampleRoot.in_folder(finished_demo.copy(folder).root)
    with root.opened() as resources:
        engines = {one.name: open_dataset(resources, one) for one in PARTS}
        drawn = {name: _drawn(engine) for name, engine in engines.items() if engine is not None}
        requests = {name: one for name, one in drawn.items() if one is not None}
        before = _found(resources, requests)
        for request in requests.values():
            add_request(root.store, request)
        assert apply_root(resources).left == {}
        after, findings = _found(resources, requests), verify_root(resources).findings
    return Served(root, requests, before, after, findings)


@pytest.mark.parametrize("dataset", PARTS, ids=lambda one: one.name)
def test_a_covered_row_is_found_and_removed(served: Served, dataset: Dataset) -> None:
    name = dataset.name
    assert name in served.requests or name in WITHOUT_ADDRESS
    # What a writer cleans with its own dataset is found there.
    places = {name, dataset.writer, WITHOUT_ADDRESS.get(name, name)}
    assert places & served.before.keys()
    assert not places & served.after.keys()


def test_nothing_of_all_that_is_found_afterwards(served: Served) -> None:
    assert served.findings == ()


@pytest.mark.soak
def test_nothing_of_all_that_comes_back_when_everything_is_built_again(served: Served) -> None:
    served.root.run("demo")
    with served.root.opened() as resources:
        assert _found(resources, served.requests) == {}
        assert verify_root(resources).findings == ()


@pytest.mark.parametrize("dataset", STORED, ids=lambda one: one.name)
def test_a_dataset_with_foreign_content_declares_by_which_address_it_goes(dataset: Dataset) -> None:
    is_foreign = any(column.role in THIRD_PARTY_ROLES for column in dataset.columns)
    addresses = dataset.columns_of(Role.url, Role.url_hash, Role.domain, Role.host)
    assert addresses or not is_foreign or dataset.removal == "rebuild"
