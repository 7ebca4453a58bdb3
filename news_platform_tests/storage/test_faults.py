"""Faults on the way to an object store, and how the store handles them."""

import random
from dataclasses import replace
from time import monotonic

import pytest

from news_platform.errors import ConfigError, Conflict, StorageError
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform_tests.emulators.fault_proxy import FaultProxy, Kind
from news_platform_tests.storage.conftest import Remote

# Several chunks of a stream, and not a multiple of one.
BODY = random.Random(7).randbytes(3_000_017)


def test_503_is_waited_out(remote: Remote) -> None:
    for method in ("PUT", "GET", "HEAD"):
        remote.proxy.inject("slow_down", method, times=2)
    remote.store.put("a", b"body")
    assert remote.store.read("a") == b"body"
    remote.proxy.inject("slow_down", "GET", times=2)
    assert [info.path for info in remote.store.list()] == ["a"]


def test_503_without_end_is_an_error_that_names_the_object(remote: Remote) -> None:
    remote.proxy.inject("slow_down", "GET", times=1000)
    with pytest.raises(StorageError, match=r"cannot read '.*root/a'.*503"):
        remote.store.read("a")
    assert remote.asked("GET") == 1 + remote.store.options.retries


@pytest.mark.parametrize("kind", ["drop", "truncate"])
def test_a_stream_goes_on_where_it_was_cut(remote: Remote, kind: Kind) -> None:
    remote.store.put("big", BODY)
    remote.proxy.inject(kind, "GET", times=3)
    with remote.store.stream("big", expected_size=len(BODY)) as stream:
        pieces = list(iter(lambda: stream.read(100_000), b""))
        assert stream.tell() == len(BODY)
    assert b"".join(pieces) == BODY


def test_a_stalled_stream_is_cut_and_goes_on(remote: Remote) -> None:
    remote.store.put("big", BODY)
    impatient = replace(remote.store.options, timeout_seconds=0.3)
    store = open_store(remote.store.url, options=impatient)
    remote.proxy.inject("stall", "GET")
    started = monotonic()
    with store.stream("big", expected_size=len(BODY)) as stream:
        assert stream.read() == BODY
    assert monotonic() - started < 9  # before the server closed the connection


def test_a_stream_asks_only_for_the_rest(remote: Remote) -> None:
    remote.store.put("big", BODY)
    remote.proxy.inject("truncate", "GET")
    with remote.store.stream("big", expected_size=len(BODY)) as stream:
        assert stream.read() == BODY
    resumed = remote.proxy.seen[-1].headers
    assert resumed["range"] == f"bytes={len(BODY) // 2}-"
    assert resumed["if-match"] == stream.etag


def test_an_object_that_changes_while_it_is_read_is_an_error(remote: Remote) -> None:
    remote.store.put("big", BODY)
    remote.proxy.inject("truncate", "GET")
    stream = remote.store.stream("big", expected_size=len(BODY))
    assert stream.read(10) == BODY[:10]
    remote.store.put("big", BODY[::-1])
    with pytest.raises(StorageError, match="changed while it was read"):
        stream.read()


def test_a_read_that_is_silently_short_is_an_error_when_the_size_is_known(remote: Remote) -> None:
    info = remote.store.put("big", BODY)
    remote.proxy.inject("truncate", "GET", times=100)
    with pytest.raises(StorageError, match="expected 3000017 bytes, received"):
        remote.store.read("big", expected_size=info.size_bytes)
    with pytest.raises(StorageError, match="big"):
        remote.store.read_range("big", 10, 1000)


def test_a_put_whose_answer_is_lost_is_repeated(remote: Remote) -> None:
    remote.proxy.inject("lose_answer", "PUT")
    assert remote.store.put("a", b"body").size_bytes == 4
    assert remote.store.read("a") == b"body"


@pytest.mark.parametrize("fault", ["lose_answer", "slow_down"])
def test_a_claim_whose_answer_is_lost_is_still_ours(remote: Remote, fault: Kind) -> None:
    remote.proxy.inject(fault, "PUT")
    assert remote.store.put_if_absent("claim", b"attempt 1")
    assert not remote.store.put_if_absent("claim", b"attempt 1")
    assert not remote.store.put_if_absent("claim", b"attempt 2")


def test_a_claim_that_another_won_stays_theirs_after_a_fault(remote: Remote) -> None:
    remote.store.put("claim", b"theirs")
    remote.proxy.inject("slow_down", "PUT")
    assert not remote.store.put_if_absent("claim", b"ours")
    assert remote.store.read("claim") == b"theirs"


def test_a_swap_whose_answer_is_lost_counts_once(remote: Remote) -> None:
    first = remote.store.compare_and_set("CURRENT", b"1", etag=None)
    remote.proxy.inject("lose_answer", "PUT")
    second = remote.store.compare_and_set("CURRENT", b"2", etag=first)
    assert remote.store.read_with_info("CURRENT")[1].etag == second
    remote.proxy.inject("slow_down", "PUT")
    with pytest.raises(Conflict):
        remote.store.compare_and_set("CURRENT", b"3", etag=first)


def test_a_delete_whose_answer_is_lost_is_fine(remote: Remote) -> None:
    remote.store.put("a", b"")
    for method in ("POST", "DELETE"):
        remote.proxy.inject("lose_answer", method)
    remote.store.delete(["a"])
    assert not remote.store.exists("a")


def test_a_listing_of_several_pages_is_whole_and_sorted(remote: Remote) -> None:
    names = [f"p/{number:02}" for number in range(25)]
    for name in names:
        remote.store.put_if_absent(name, b"")
    remote.proxy.page_size = 7
    remote.proxy.inject("slow_down", "GET", times=1)
    assert [info.path for info in remote.store.list("p")] == names
    remote.proxy.seen.clear()
    assert [info.path for info in remote.store.list("p", name_prefix="24")] == names[24:]
    assert remote.asked("GET", "list-type") == 1


def test_a_missing_bucket_is_named_with_its_cure(remote: Remote) -> None:
    scheme = remote.store.url.partition("://")[0]
    store = open_store(f"{scheme}://no-such-bucket", options=remote.store.options)
    for act in (lambda: list(store.list()), lambda: store.put("a", b""), lambda: store.read("a")):
        with pytest.raises(
            ConfigError, match=r"no-such-bucket.*does not exist; create it"
        ) as caught:
            act()
        assert "\n" not in str(caught.value)


def test_an_unreachable_store_is_named_with_its_address() -> None:
    options = StoreOptions(
        endpoint_url="http://someone:hush@127.0.0.1:9",
        access_key="key-id",
        secret_key="key-secret",
        allow_http=True,
        retries=1,
        backoff_seconds=0.01,
    )
    store = open_store("s3://bucket/root", options=options)
    with pytest.raises(StorageError) as caught:
        store.read("a")
    message = str(caught.value)
    assert "'s3://bucket/root/a'" in message
    assert "127.0.0.1:9 is unreachable; check the address" in message
    assert "\n" not in message
    for secret in ("hush", "key-id", "key-secret"):
        assert secret not in message
        assert secret not in repr(options)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_a_long_row_of_faults_loses_and_doubles_nothing(remote: Remote, seed: int) -> None:
    _storm(remote.store, remote.proxy, random.Random(seed), rounds=100)


def test_a_short_row_of_faults_loses_and_doubles_nothing(remote: Remote) -> None:
    _storm(remote.store, remote.proxy, random.Random(1), rounds=12)


def _storm(store: ObjectStore, proxy: FaultProxy, rng: random.Random, *, rounds: int) -> None:
    """Count by compare-and-set and claim names while requests fail; then check the totals."""
    tag = store.compare_and_set("counter", b"0", etag=None)
    for number in range(1, rounds + 1):
        kinds: list[Kind] = ["slow_down", "lose_answer"]
        proxy.inject(rng.choice(kinds), "PUT", times=rng.randint(0, 2))
        proxy.inject(rng.choice([*kinds, "drop"]), "GET", times=rng.randint(0, 2))
        tag = store.compare_and_set("counter", b"%d" % number, etag=tag)
        assert store.put_if_absent(f"claim/{number}", b"%d" % number)
        assert store.read("counter") == b"%d" % number
    assert len(list(store.list("claim"))) == rounds
