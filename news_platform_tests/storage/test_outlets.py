"""Outlets: the domains that a filter chooses, and what is said about a filter that chooses none."""

import pytest

from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.outlets import OUTLETS_FILE, with_outlets

FILE = """\ufeffDomain, name,country,language,kind
www.post.example,The Post,GB,en,daily
diari.example,"El Diari, 1901",ES,ca;es,daily
münster.example,Blatt,DE,de,weekly
,nameless,DE,de,weekly
"""


@pytest.fixture
def store(local_store: ObjectStore) -> ObjectStore:
    local_store.put(OUTLETS_FILE, FILE.encode())
    return local_store


@pytest.mark.parametrize(
    ("given", "domains"),
    [
        (["bbc.co.uk"], ("bbc.co.uk",)),
        (["country=gb"], ("post.example",)),
        (["Country = ES,DE"], ("diari.example", "xn--mnster-3ya.example")),
        (["language=es"], ("diari.example",)),
        (["kind=daily", "bbc.co.uk", "country=GB"], ("diari.example", "post.example", "bbc.co.uk")),
    ],
)
def test_a_filter_stands_for_the_domains_of_its_outlets(
    store: ObjectStore, given: list[str], domains: tuple[str, ...]
) -> None:
    assert with_outlets(store, given) == domains


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("country=XX", "no outlet has country 'xx': expected one of de, es, gb"),
        ("country=", "no outlet has country ''"),
        ("contry=GB", "has no column 'contry': did you mean 'country'?"),
    ],
)
def test_a_filter_that_no_outlet_meets_names_the_known_values(
    store: ObjectStore, given: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        with_outlets(store, [given])
    assert message in str(caught.value)


@pytest.mark.parametrize(("body", "message"), [(None, "there is no"), (b"name", "no column 'dom")])
def test_a_root_without_outlets_says_so(
    local_store: ObjectStore, body: bytes | None, message: str
) -> None:
    if body is not None:
        local_store.put(OUTLETS_FILE, body)
    with pytest.raises(InputError, match=message):
        with_outlets(local_store, ["country=GB"])
    assert with_outlets(local_store, ["post.example"]) == ("post.example",)
