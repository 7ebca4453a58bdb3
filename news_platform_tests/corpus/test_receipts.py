"""Receipts: an export that a stranger checks with the script inside it, and none of our code."""

import base64
import gzip
import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import mlcroissant
import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from news_platform.corpus.export import verify_export
from news_platform.corpus.export.filtering import (
    ExportSelection,
    QuotedStatement,
    Stated,
    UsageRule,
)
from news_platform.corpus.export.pipeline import (
    IN_EARLIER_EXPORT,
    EmptySelection,
    ExportOptions,
    export_corpus,
)
from news_platform.corpus.export.receipts import EarlierExports, load_signer
from news_platform.errors import ConfigError, InputError
from news_platform.near_duplicates.candidates import export_sketch
from news_platform.storage.objects.store import ObjectStore
from news_platform.text.normalize import jaccard, shingles
from news_platform_tests.corpus.articles import article, store_articles

DAY = "2025-11-01"
WARC = "CC-NEWS-20251101000000-00001.warc.gz"
AT = datetime(2025, 11, 1, 10, tzinfo=UTC)
RULE = UsageRule("training", "ai_train")
QUOTE = QuotedStatement(
    "https://a.example/robots.txt", "robots.txt", 3, "Allow: /", AT, hashlib.sha256(b"").hexdigest()
)


def stated(url: str, rule: UsageRule, at: datetime) -> Stated:
    return Stated("allow", AT, "GPTBot", (QUOTE,)) if "a.example" in url else Stated("unknown")


def sentences(seed: int, count: int = 12) -> list[str]:
    chance = random.Random(seed)
    return [
        " ".join(f"word{chance.randrange(5_000)}" for _ in range(9)).capitalize() + "."
        for _ in range(count)
    ]


def record(url: str, text: list[str]) -> tuple[bytes, str]:
    """Return a gzip member with the response of a page, and the digest of its payload."""
    body = "".join(f"<p>{one}</p>" for one in text)
    payload = f"<html><body><nav>Home</nav>{body}</body></html>".encode()
    digest = "sha1:" + base64.b32encode(hashlib.sha1(payload).digest()).decode()
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + payload
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
        f"WARC-Date: {AT.isoformat()}\r\nWARC-Payload-Digest: {digest}\r\n"
        f"Content-Length: {len(http)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + http + b"\r\n\r\n"), digest


@pytest.fixture
def key(tmp_path: Path) -> Path:
    private = Ed25519PrivateKey.generate()
    path = tmp_path / "key.pem"
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path.with_name("public.pem").write_bytes(public)
    return path


@pytest.fixture
def crawled(local_store: ObjectStore, tmp_path: Path) -> ObjectStore:
    """A day whose articles have their records in one WARC."""
    rows, body = [], b""
    for number, domain in enumerate(("a.example", "a.example", "b.example")):
        url, text = f"https://{domain}/{number}", sentences(number)
        member, digest = record(url, text)
        given = {
            "fetched_at": AT,
            "warc": WARC,
            "record_offset": len(body),
            "record_length": len(member),
            "payload_digest": digest,
        }
        rows.append(article(url, "\n".join(text), **given))
        body += member
    (tmp_path / "warcs").mkdir()
    (tmp_path / "warcs" / WARC).write_bytes(body)
    store_articles(local_store, DAY, rows, tmp_path)
    return local_store


def export(store: ObjectStore, folder: Path, key: Path | None, **given: object) -> Path:
    options = ExportOptions(
        stated_usage=stated,
        sketch=export_sketch,
        sign=load_signer(str(key)) if key else None,
        lists=(("publishers", 2),),
        takedowns="0123456789abcdef",
    )
    selection = ExportSelection(days=(DAY,), rules=(RULE,))
    export_corpus(store, folder, selection, replace(options, **given))  # type: ignore[arg-type]
    return folder


def verify(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run the script inside the export, where our package cannot be imported."""
    script = folder / "verify_export.py"
    command = [sys.executable, "-I", str(script), str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def test_a_signed_export_is_verified_with_its_records(
    crawled: ObjectStore, key: Path, tmp_path: Path
) -> None:
    folder = export(crawled, tmp_path / "out", key)
    code, text = verify(
        folder, "--key", str(tmp_path / "public.pem"), "--warcs", str(tmp_path / "warcs")
    )
    assert (code, "nothing is wrong" in text) == (0, True), text
    assert "records: 3, rows: 3, signatures: 1" in text
    assert "news_platform" not in (folder / "verify_export.py").read_text()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["is_signed"], manifest["lists"]) == (True, [["publishers", 2]])
    rows = pl.read_parquet(sorted((folder / "data").iterdir()))
    assert rows["usage"][0][0]["statements"] == [QUOTE.id]
    assert json.loads((folder / "statements.jsonl").read_text())["line"] == 3


def test_unsigned_exports_say_so(crawled: ObjectStore, key: Path, tmp_path: Path) -> None:
    folder = export(crawled, tmp_path / "out", None)
    assert json.loads((folder / "manifest.json").read_text())["is_signed"] is False
    assert "is not signed" in (folder / "README.md").read_text()
    code, text = verify(folder)
    assert (code, "A key inside it would prove nothing" in text) == (0, True)
    assert verify(folder, "--key", str(tmp_path / "public.pem"))[0] == 1


def change_rows(folder: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    path = next((folder / "data").iterdir())
    change(pl.read_parquet(path)).write_parquet(path)


def with_value(name: str, value: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        change_rows(folder, lambda rows: rows.with_columns(pl.lit(value).alias(name)))

    return change


def change_manifest(name: str, value: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))

    return change


def resigned(folder: Path) -> None:
    """Change the rows and make the manifest fit: only the signature tells."""
    change_rows(folder, lambda rows: rows.head(2))
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    shard = manifest["shards"][0]
    digest = hashlib.sha256((folder / shard["path"]).read_bytes()).hexdigest()
    manifest["files"][shard["path"]] = shard["sha256"] = digest
    manifest["articles"] = shard["articles"] = 2
    path.write_text(json.dumps(manifest))


def swap_policy_date(folder: Path) -> None:
    path = folder / "statements.jsonl"
    path.write_text(path.read_text().replace("2025-11-01T10", "2024-01-01T10"))


FOREIGN = {
    "a row is added": lambda it: change_rows(it, lambda rows: pl.concat([rows, rows.head(1)])),
    "a removed row is kept": resigned,
    "a row is removed": lambda it: change_rows(it, lambda rows: rows.head(2)),
    "a text is edited": with_value("text", "Another text."),
    "an offset is moved": with_value("record_offset", 7),
    "a shard is exchanged": lambda it: shutil.copy(it / "README.md", next((it / "data").iterdir())),
    "a statement is removed": lambda it: (it / "statements.jsonl").write_text(""),
    "a list is forged": change_manifest("lists", [["publishers", 3]]),
    "the manifest is unsigned": lambda it: (it / "manifest.sig").unlink(),
    "the date of a policy is swapped": swap_policy_date,
    "a file is added": lambda it: (it / "data" / "more.txt").write_text("more"),
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
def test_what_somebody_without_the_key_changes_is_found(
    crawled: ObjectStore, key: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    folder = export(crawled, tmp_path / "out", key)
    change(folder)
    code, text = verify(folder, "--key", str(tmp_path / "public.pem"))
    assert (code, "something is wrong" in text) == (1, True), text


LIES = {
    "offset": ("record_offset", 7, "no record at"),
    "digest": ("payload_digest", "sha1:AAAA", "the payload is another"),
    "time": ("fetched_at", AT + timedelta(hours=1), "fetched at"),
    "text": ("text", "\n".join(sentences(99)), "only 0% of its sentences"),
}


@pytest.mark.parametrize(("name", "value", "message"), LIES.values(), ids=LIES)
def test_a_signer_who_lies_is_found_by_the_records(
    crawled: ObjectStore, key: Path, tmp_path: Path, name: str, value: object, message: str
) -> None:
    text = sentences(0)
    member, digest = record("https://a.example/0", text)
    true = {
        "fetched_at": AT,
        "warc": WARC,
        "record_offset": 0,
        "record_length": len(member),
        "payload_digest": digest,
        "text": "\n".join(text),
    }
    row = {**article("https://a.example/0", "\n".join(text)), **true, name: value}
    store_articles(crawled, DAY, [row], tmp_path)
    folder = export(crawled, tmp_path / "out", key)
    public = str(tmp_path / "public.pem")
    assert verify(folder, "--key", public)[0] == 0
    code, found = verify(folder, "--key", public, "--warcs", str(tmp_path / "warcs"))
    assert (code, message in found) == (1, True), found


PAGES = {
    "a page in the charset of its own meta element": (
        b'<meta charset="iso-8859-9"><p>%s</p>'
        % "İstanbul'da kar ne zaman yağacak?".encode("cp1254"),
        "İstanbul'da kar ne zaman yağacak?",
    ),
    "a text that only a script holds": (
        b'<script type="application/ld+json">{"articleBody": "Ust\\u0105pi\\u0142 rz\\u0105d."}'
        b"</script><p>Menu</p>",
        "Ustąpił rząd.",
    ),
    "tags that are text": (b"<xmp><b>Bold</b> is <i>not</i></xmp>", "<b>Bold</b> is <i>not</i>"),
    "entities and tags within words": (b"<p>Caf&eacute; <b>o</b>pen.</p>", "Café open."),
}


@pytest.mark.parametrize(("page", "text"), PAGES.values(), ids=PAGES)
def test_the_text_of_an_honest_page_is_found_however_it_is_written(page: bytes, text: str) -> None:
    texts = list(verify_export.iter_texts({}, page))
    assert any(verify_export.letters(text) in found for found in texts)
    assert not any(verify_export.letters("Another text.") in found for found in texts)


def test_many_rows_are_checked_by_several_processes(
    local_store: ObjectStore, key: Path, tmp_path: Path
) -> None:
    count = 2 * verify_export.AT_ONCE + 1
    rows = [article(f"https://a.example/{n}", " ".join(sentences(n, 3))) for n in range(count)]
    store_articles(local_store, DAY, rows, tmp_path)
    folder = export(local_store, tmp_path / "out", key, file_format="jsonl")
    code, text = verify(folder, "--key", str(tmp_path / "public.pem"))
    assert (code, f"rows: {count}, rows without their record at hand: {count}" in text) == (0, True)
    (tmp_path / "list.txt").write_text(f"a.example/{count - 1}\n")
    code, text = verify(folder, "--list", str(tmp_path / "list.txt"))
    assert (code, text.count("is on a list")) == (1, 1), text


@pytest.mark.parametrize("name", ["statements.jsonl", "manifest.json"])
def test_an_export_that_lacks_a_file_is_wrong_and_no_traceback(
    crawled: ObjectStore, tmp_path: Path, name: str
) -> None:
    folder = export(crawled, tmp_path / "out", None)
    (folder / name).unlink()
    code, text = verify(folder)
    assert (code, name in text, "something is wrong" in text) == (1, True, True)


@pytest.mark.parametrize(
    ("entry", "is_found"),
    [
        ("b.example", True),
        ("https://www.b.example/", True),
        ("a.example/1", True),
        ("a.example/10", False),
        ("# b.example", False),
        ("example", False),
        ('["c.example", "b.example"]', True),
        ("b.example;2026-01-01", True),
        ("https://*.b.example/*", True),
        ("bücher.example", True),
        ("www.gov.uk", False),
        ("https://www.hmrc.gov.uk/", True),
    ],
)
def test_no_row_of_an_opt_out_list_is_inside(
    crawled: ObjectStore, tmp_path: Path, entry: str, is_found: bool
) -> None:
    hosts = ("a.example", "b.example", "xn--bcher-kva.example", "hmrc.gov.uk")
    rows = [article(f"https://{host}/1", f"A text of {host}.") for host in hosts]
    store_articles(crawled, DAY, rows, tmp_path)
    folder = export(crawled, tmp_path / "out", None)
    (tmp_path / "list.txt").write_text(f"{entry}\n", encoding="utf-8")
    assert verify(folder, "--list", str(tmp_path / "list.txt"))[0] == int(is_found)


@pytest.mark.parametrize("entry", ["www.gov.uk", "https://www.gov.uk/1*"])
def test_a_site_under_a_public_suffix_is_found_in_an_export(
    crawled: ObjectStore, tmp_path: Path, entry: str
) -> None:
    row = article("https://www.gov.uk/1", "A text of a government.")
    store_articles(crawled, DAY, [row], tmp_path)
    folder = export(crawled, tmp_path / "out", None)
    (tmp_path / "list.txt").write_text(f"{entry}\n", encoding="utf-8")
    assert verify(folder, "--list", str(tmp_path / "list.txt"))[0] == 1


def test_what_earlier_exports_hold_is_left_out(
    crawled: ObjectStore, key: Path, tmp_path: Path
) -> None:
    first = export(crawled, tmp_path / "first", None)
    held = sentences(0)
    near = [*held[:-1], "The last sentence is a new one."]
    rows = [
        article("https://c.example/near", "\n".join(near)),
        article("https://c.example/new", "\n".join(sentences(50))),
    ]
    store_articles(crawled, DAY, rows, tmp_path)
    second = export(crawled, tmp_path / "second", key, earlier=EarlierExports([first]))
    found = pl.read_parquet(sorted((second / "data").iterdir()))
    assert found["url"].to_list() == ["https://c.example/new"]
    manifest = json.loads((second / "manifest.json").read_text())
    assert manifest["dropped"] == {IN_EARLIER_EXPORT: 1}
    digest = hashlib.sha256((first / "manifest.json").read_bytes()).hexdigest()
    assert manifest["excepted"] == [digest]
    both = EarlierExports([first, second])
    with pytest.raises(EmptySelection, match="earlier exports hold all of it"):
        export(crawled, tmp_path / "third", None, earlier=both)
    with pytest.raises(InputError, match="is not an export"):
        EarlierExports([tmp_path])


def test_sketches_find_nearly_all_near_duplicates_and_nothing_else(tmp_path: Path) -> None:
    chance = random.Random(5)
    earlier, pairs = [], []
    for number in range(300):
        words = " ".join(sentences(number, 30)).split()
        earlier.append(" ".join(words))
        copy = list(words)
        for at in chance.sample(range(len(copy)), chance.randrange(1, 12)):
            copy[at] = f"edit{at}"
        pairs.append((" ".join(words), " ".join(copy)))
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "manifest.json").write_text("{}")
    sketches = [export_sketch(text) for text in earlier]
    assert max(map(len, sketches)) <= 100
    pl.DataFrame({"sketch": sketches}).write_parquet(folder / "train.parquet")
    held = EarlierExports([tmp_path])
    near = [copy for text, copy in pairs if jaccard(shingles(text, 3), shingles(copy, 3)) >= 0.8]
    assert len(near) >= 100
    assert sum(held.hold(export_sketch(copy)) for copy in near) >= 0.9 * len(near)
    others = [" ".join(sentences(number, 30)) for number in range(1_000, 1_300)]
    assert not any(held.hold(export_sketch(text)) for text in others)


def test_a_key_that_cannot_sign_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("not a key")
    for name in ("no.pem", "missing.pem"):
        with pytest.raises(ConfigError, match="cannot read the signing key"):
            load_signer(str(tmp_path / name))


def test_the_papers_follow_from_the_manifest(crawled: ObjectStore, tmp_path: Path) -> None:
    folder = export(crawled, tmp_path / "out", None)
    croissant = json.loads((folder / "croissant.json").read_text())
    manifest = json.loads((folder / "manifest.json").read_text())
    assert croissant["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    assert croissant["@context"]["sc"] == "https://schema.org/"
    assert [one["sha256"] for one in croissant["distribution"]] == [
        shard["sha256"] for shard in manifest["shards"]
    ]
    summary = (folder / "training_summary.md").read_text()
    assert "CC-NEWS of Common Crawl, 3 articles" in summary
    assert "| a.example |" in summary
    card = (folder / "README.md").read_text()
    assert card.count("| ") >= 22
    assert "| License to use | other: each text belongs to its publisher |" in card
    dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    first = next(iter(dataset.records("articles")))
    assert first["articles/url"] in (b"https://a.example/0", "https://a.example/0")
