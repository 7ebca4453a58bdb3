"""Texts are found again by hashes of their runs, and nothing else is taken for them."""

import gzip
import io
import json
import random
import zipfile

import pytest

from news_platform.datasets.takedowns import TEXTS
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.evidence import VerifiedRoot
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removed_texts import keep_texts, read_removed_texts
from news_platform.takedowns.text_runs import FEWEST_RUNS, KEPT_RUNS, RemovedTexts, runs_of
from news_platform.takedowns.verify import verify_store
from news_platform.web.urls import url_hash
from news_platform_tests.takedowns.asked import asked
from news_platform_tests.takedowns.test_verify import _parquet, _xlsx

URL, OTHER = "https://harbour.example/news/one", "https://o.example/copy"
_LETTERS = {
    "latin": "abcdefghijklmnopqrstuvwxyz",
    "russian": "абвгдежзиклмнопрст",
    "han": "春夏秋冬山水风云日月星天地人",
}


def _text(script: str, *, seed: int, words: int = 200) -> str:
    draw = random.Random(seed)
    letters = _LETTERS[script]
    return " ".join("".join(draw.choices(letters, k=draw.randint(3, 9))) for _ in range(words))


TEXT = _text("latin", seed=1)


@pytest.mark.parametrize("script", _LETTERS)
def test_a_text_is_found_in_any_wrapping(script: str) -> None:
    text = _text(script, seed=1)
    removed = RemovedTexts([runs_of(text), runs_of(_text(script, seed=2))])
    page = f'<html><p class="x">{text}</p></html>'.encode()
    line = json.dumps({"tree": "<a>", "text": f'"{text}"'}, ensure_ascii=False).encode()
    for content in (text.encode(), page, line, b"x" + text.encode()):
        assert removed.held_by(content)


def test_nearly_all_of_a_text_is_a_copy_and_half_of_it_is_not() -> None:
    removed = RemovedTexts([runs_of(TEXT)])
    content = TEXT.encode()
    assert removed.held_by(content[: len(content) * 19 // 20])
    assert removed.held_by(content[: len(content) // 2], content[len(content) // 2 :])
    assert not removed.held_by(content[: len(content) // 2])
    assert len(removed.positions(content)) >= len(runs_of(TEXT)) >= FEWEST_RUNS


def test_other_texts_have_no_run_in_common() -> None:
    removed = RemovedTexts([runs_of(TEXT)])
    for seed in range(2, 50):
        assert len(removed.positions(_text("latin", seed=seed).encode())) == 0
    assert not RemovedTexts().held_by(TEXT.encode()) and not RemovedTexts()


def test_a_short_text_has_no_runs_and_a_long_one_has_few() -> None:
    assert runs_of("") == () and runs_of("A few words.") == ()
    assert len(runs_of(_text("latin", seed=3, words=5_000))) == KEPT_RUNS


def test_the_record_keeps_hashes_and_never_the_text(local_store: ObjectStore) -> None:
    keep_texts(local_store, [TEXT, "A short one.", None, " "])
    keep_texts(local_store, ["A short one.", TEXT])
    keep_texts(local_store, [])
    (info,) = local_store.list(TEXTS)
    body = local_store.read(info.path).decode()
    assert not any(word in body for word in TEXT.split() if len(word) > 5)
    removed = read_removed_texts(local_store)
    assert removed.held_by(TEXT.encode()) and len(removed.equal) == 2


def _verified(store: ObjectStore) -> VerifiedRoot:
    takedowns = Takedowns.of([asked("url", URL)])
    return verify_store(store, takedowns, texts=RemovedTexts([runs_of(TEXT)]))


def _record(url: str) -> bytes:
    record = {"domain": url.split("/")[2], "uri": url, "tree": f"<p>{TEXT}</p>"}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


COPIES = {
    "news/raw/part-0.parquet": _parquet(uri=["https://a.example/", OTHER], text=["other", TEXT]),
    "crawl_articles/day=1/x.parquet": _parquet(url=[OTHER], text=[TEXT]),
    "domain_store/data/1/0/part-1.jsonl.gz": gzip.compress(
        _record("https://a.example/").replace(TEXT.encode(), b"") + _record(OTHER)
    ),
    "snapshots/institution=x/a.json": json.dumps(
        {"data": {"markdown": TEXT, "metadata": {"sourceURL": OTHER}}}
    ).encode(),
    "quarantine/x.jsonl": json.dumps({"url": OTHER, "text": TEXT}).encode() + b"\n",
}


@pytest.mark.parametrize("path", COPIES)
def test_the_text_under_another_address_is_a_copy_elsewhere(
    local_store: ObjectStore, path: str
) -> None:
    local_store.put(path, COPIES[path])
    found = _verified(local_store)
    assert found.findings == ()
    assert [(one.place, one.url) for one in found.copies] == [(path, OTHER)]


def test_a_copy_in_the_workbook_is_listed(local_store: ObjectStore) -> None:
    cells = "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in (OTHER, TEXT))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/worksheets/sheet1.xml", f"<row r='1'></row><row r='2'>{cells}</row>")
    local_store.put("article_sheets/articles.xlsx", file.getvalue())
    found = _verified(local_store)
    assert found.findings == () and [one.place.split()[0] for one in found.copies] == [
        "article_sheets/articles.xlsx"
    ]


@pytest.mark.parametrize(
    "path",
    [f"articles/full_text/ab/{url_hash(OTHER)}.txt.gz", "articles/pages/ab/abcd.html.zst"],
)
def test_a_text_under_no_address_is_found(local_store: ObjectStore, path: str) -> None:
    import pyarrow as pa

    body = TEXT.encode()
    packed = gzip.compress(body) if path.endswith("gz") else pa.compress(body, "zstd", asbytes=True)
    local_store.put(path, packed)
    found = _verified(local_store)
    assert [(one.place, one.what) for one in found.findings] == [
        (path, "text of a removed page, under no address")
    ]


def test_a_text_whose_address_the_ledger_knows_is_a_copy(local_store: ObjectStore) -> None:
    path = f"articles/full_text/ab/{url_hash(OTHER)}.txt.gz"
    local_store.put(path, gzip.compress(TEXT.encode()))
    found = verify_store(
        local_store,
        Takedowns.of([asked("url", URL)]),
        texts=RemovedTexts([runs_of(TEXT)]),
        more=[lambda evidence: evidence.name_page(url_hash(OTHER), OTHER)],
    )
    assert found.findings == () and [one.url for one in found.copies] == [OTHER]


def test_a_text_in_free_space_of_a_database_is_found(local_store: ObjectStore) -> None:
    # One page on the free list, which is a trunk without numbers.
    header = bytearray(4096)
    header[:18] = b"SQLite format 3\0" + (4096).to_bytes(2, "big")
    header[32:36] = (2).to_bytes(4, "big")
    free = (b"\0" * 8 + TEXT.encode()).ljust(4096, b"\0")[:4096]
    local_store.put("ledger.sqlite", bytes(header) + free)
    (found,) = _verified(local_store).findings
    assert found.what == "text of a removed page in space that no row uses"


def test_the_last_record_of_a_file_is_read_also_without_a_line_break(
    local_store: ObjectStore,
) -> None:
    local_store.put("domain_store/data/1/0/part-1.jsonl.gz", gzip.compress(_record(URL)[:-1]))
    found = _verified(local_store)
    assert len(found.findings) == 2 and found.rows == 1


def test_more_requests_than_are_searched_as_bytes_are_found_all_the_same(
    local_store: ObjectStore,
) -> None:
    urls = [f"https://harbour.example/news/{number:03}" for number in range(200)]
    local_store.put("samples/x.json", json.dumps({"url": urls[150]}).encode())
    local_store.put("article_sheets/articles.xlsx", _xlsx(urls[160]))
    found = verify_store(local_store, Takedowns.of([asked("url", *urls)]))
    assert len(found.findings) == 2
