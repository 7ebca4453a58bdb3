"""Research records to queue messages, for what real research files contain."""

import pytest

from news_platform.datasets.research_datasets import (
    DomainQueueMessage,
    PartitionInfo,
    SeedQueueMessage,
)
from news_platform.domain_metadata.raw_files import DroppedResearchRecord, iter_messages, message_of

SEED = SeedQueueMessage(
    raw_file_path="raw/country=de/category=media/date=2025-11-01/raw_0001.json",
    partition_info=PartitionInfo.of("de", "media", "2025-11-01"),
)


def message(**record: object) -> DomainQueueMessage:
    found = message_of(record, seed=SEED)
    assert isinstance(found, DomainQueueMessage), found
    return found


def test_a_record_becomes_a_message_with_its_origin() -> None:
    found = message(
        raw_url="https://www.bbc.co.uk/news",
        normalized_domain="bbc.co.uk",
        source_type="Media",
        confidence=0.9,
        something_new={"kept": "elsewhere"},
    )
    assert found.model_dump(mode="json") == {
        "domain_id": "media:de:bbc.co.uk",
        "domain_url": "https://www.bbc.co.uk/news",
        "registrable_domain": "bbc.co.uk",
        "authority": "media",
        "partition_info": {"country": "de", "category": "media", "date": "2025-11-01"},
        "source_file_path": SEED.raw_file_path,
    }


@pytest.mark.parametrize(
    ("record", "domain"),
    [
        ({"raw_url": "https://www.bbc.co.uk/x"}, "bbc.co.uk"),
        ({"normalized_domain": "www.Bbc.co.uk."}, "bbc.co.uk"),
        ({"normalized_domain": " https://a.test/x "}, "a.test"),
        ({"raw_url": "https://münchen.test/"}, "xn--mnchen-3ya.test"),
        ({"normalized_domain": "127.0.0.1"}, "127.0.0.1"),
        ({"raw_url": "http://[::1]/"}, "::1"),
        ({"normalized_domain": "a_b.test"}, "a_b.test"),
        ({"raw_url": "https://a.test", "confidence": 7}, "a.test"),
        ({"raw_url": "https://a.test", "normalized_domain": 7}, "a.test"),
    ],
)
def test_the_domain_is_found_however_it_is_written(record: dict[str, str], domain: str) -> None:
    assert message(**record).registrable_domain == domain


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, "no_domain"),
        ({"raw_url": "", "normalized_domain": " "}, "no_domain"),
        ({"normalized_domain": "localhost"}, "not_a_domain"),
        ({"normalized_domain": "../../etc/passwd"}, "not_a_domain"),
        ({"normalized_domain": "a b.test"}, "not_a_domain"),
        ({"normalized_domain": "a|b.test"}, "not_a_domain"),
        ({"normalized_domain": "foo..test"}, "not_a_domain"),
        ({"normalized_domain": f"{'a' * 64}.test"}, "not_a_domain"),
        ({"normalized_domain": "a\0.test"}, "not_a_domain"),
        ({"normalized_domain": "-a.test"}, "not_a_domain"),
        ({"normalized_domain": 7}, "bad_normalized_domain"),
        ({"normalized_domain": "co.uk"}, "not_a_domain"),
        ({"raw_url": "https://co.uk/news"}, "not_a_domain"),
        ({"confidence": 7}, "bad_confidence"),
        ("a.test", "bad_record"),
        (None, "bad_record"),
        ([], "bad_record"),
    ],
)
def test_a_record_that_cannot_be_has_a_reason(record: object, reason: str) -> None:
    assert message_of(record, seed=SEED) == reason


@pytest.mark.parametrize(
    ("raw_url", "kept"),
    [
        ("https://user:secret@www.a.example:8443/x", "https://www.a.example/"),
        ("https://a.example\\@other.example/", "https://a.example/"),
        ("https://www.a.example/\ud83d", "https://www.a.example/"),
        ("https://a\0b.a.example/", "https://a.example/"),
        ("https://foo bar.a.example/", "https://a.example/"),
        ("https://www.a.example?x=@other.example", "https://www.a.example?x=@other.example"),
    ],
)
def test_of_an_odd_address_only_the_host_is_kept(raw_url: str, kept: str) -> None:
    found = message(raw_url=raw_url)
    assert (found.registrable_domain, found.domain_url) == ("a.example", kept)
    assert DomainQueueMessage.model_validate_json(found.model_dump_json()) == found


def test_each_domain_gives_one_message_and_bad_records_keep_their_place() -> None:
    records = [{"raw_url": "https://a.example/1"}, {}, {"raw_url": "https://www.a.example/2"}, "x"]
    found = list(iter_messages(records, seed=SEED))
    assert [one.domain_url for one in found if isinstance(one, DomainQueueMessage)] == [
        "https://a.example/1"
    ]
    assert [one for one in found if isinstance(one, DroppedResearchRecord)] == [
        DroppedResearchRecord(1, "no_domain", {}),
        DroppedResearchRecord(3, "bad_record", "x"),
    ]
