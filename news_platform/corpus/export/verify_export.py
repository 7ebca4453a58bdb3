"""Check an export of News Platform without any of its code.

python verify_export.py EXPORT --key PUBLIC.pem [--warcs FOLDER] [--list FILE]...

--key finds every change to a signed export by somebody else; get the key from the signer by another
way: one inside the export proves nothing. --warcs compares every row of the crawl with its record,
also if the signer lies; rows of feeds have none. --list finds rows of an opt-out list. It needs
Python 3.11, pyarrow, and cryptography for --key, and exits with 0 if nothing is wrong.
"""

import base64
import hashlib
import html
import json
import re
import sys
import zlib
from argparse import ArgumentParser, RawTextHelpFormatter
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from datetime import datetime
from itertools import islice
from multiprocessing import cpu_count, get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]
CHECKED: Counter[str] = Counter()
AT_ONCE = 500
SENTENCE = re.compile(r"(?<=[.!?。！？…])\s+|\n")
# Begins with a character that is searched for quickly; scripts are left out with their text.
TAG = re.compile(
    r"(?is)<(?:!--.*?--|(?:script|style)\b[^<]*(?:<(?!/s(?:cript|tyle))[^<]*)*</\w+\s*|[^>]*)>"
)
ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt]")
HEADER = re.compile(r"^([^:\s]+):[ \t]*(.*?)\s*$", re.M)
SPACE = re.compile(r"[\W_]+")
CHARSET = re.compile(rb"charset=[\"' ]*([\w-]+)", re.I)


def wrong(text: str) -> None:
    """Note a problem."""
    CHECKED[f"WRONG {text}"] += 1


def check_signature(folder: Path, key: Path | None) -> None:
    """Check that the holder of the key signed the manifest."""
    if key is None:
        sys.stdout.write("No --key: signature not checked. A key inside it would prove nothing.\n")
        return
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        public: Any = load_pem_public_key(key.read_bytes())
        signature = (folder / "manifest.sig").read_bytes()
        public.verify(base64.b64decode(signature), (folder / "manifest.json").read_bytes())
        CHECKED["signatures"] += 1
    except (OSError, InvalidSignature, TypeError, ValueError) as error:
        wrong(f"manifest.json is not signed by this key ({error!r})")


def check_files(folder: Path, wanted: dict[str, str]) -> None:
    """Check that the files are exactly those of the manifest."""
    found = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
    for name in sorted({*found, *wanted} - {"manifest.json", "manifest.sig"}):
        CHECKED["files"] += 1
        if found.get(name) != wanted.get(name):
            wrong(f"{name} is missing, or another file than the manifest names")


def read_statements(folder: Path) -> set[str]:
    """Return the ids of the statements; an id is the digest of the other fields."""
    found = set()
    for line in (folder / "statements.jsonl").open(encoding="utf-8", newline="\n"):
        statement = json.loads(line)
        found.add(name := statement.pop("id"))
        if hashlib.sha256(json.dumps(statement).encode()).hexdigest()[:16] != name:
            wrong(f"statement {name} was changed")
    return found


def rows_of(path: Path, part: int, parts: int) -> Iterator[Row]:
    """Yield the rows of every `parts`-th batch of a shard."""
    if path.suffix == ".parquet":
        for batch in islice(pq.ParquetFile(path).iter_batches(AT_ONCE), part, None, parts):
            yield from batch.to_pylist()
    else:
        lines = pa.input_stream(str(path)).read().decode().rstrip("\n").split("\n")
        for start in range(part * AT_ONCE, len(lines), parts * AT_ONCE):
            yield from map(json.loads, lines[start : start + AT_ONCE])


def check_policy(row: Row, statements: set[str], rules: list[str]) -> None:
    """Check that nothing is refused, and that every statement named is shipped."""
    for rule in set(rules) - {usage["rule"] for usage in row["usage"]}:
        wrong(f"{row['id']}: no verdict about {rule}")
    for usage in row["usage"]:
        if usage["verdict"] in ("refuse", "conflicting"):
            wrong(f"{row['id']}: {usage['rule']} is refused")
        if usage["verdict"] == "allow" and not usage["statements"]:
            wrong(f"{row['id']}: no statement allows {usage['rule']}")
        for name in set(usage["statements"]) - statements:
            wrong(f"{row['id']}: statement {name} is not in the export")


def read_entries(files: list[Path]) -> set[str]:
    """Return the entries of opt-out lists: one per line, before any comma, or strings in JSON."""
    found = set()
    for text in (file.read_text("utf-8-sig") for file in files):
        is_json = text.lstrip()[:1] in ("[", "{")
        for line in re.findall(r'"([^"]*)"(?!\s*:)', text) if is_json else text.splitlines():
            entry = re.split(r"[,;\t]|\s#", line)[0].strip(' "').lower()
            host, slash, path = (entry.partition("://")[2] or entry).rstrip("/*").partition("/")
            with suppress(UnicodeError):
                host = host.encode("idna").decode()
            found.add(host.removeprefix("*.") + slash + path)
    return found


def covering(url: str, domain: str) -> list[str]:
    """Return the entries that would cover an address: itself, its folders, its domains."""
    parts = url.lower().partition("://")[2].removeprefix("www.").rstrip("/").split("/")
    labels = parts[0].partition(":")[0].split(".")
    pages = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    hosts = [".".join(labels[start:]) for start in range(len(labels) - 1)]
    return pages + hosts + [f"www.{it}" for it in pages + hosts if it in pages or domain in it]


def read_record(path: Path, row: Row) -> tuple[Row, Row, bytes]:
    """Return the WARC headers, the HTTP headers and the payload of the record of a row."""
    with path.open("rb") as file:
        file.seek(row["record_offset"])
        body = file.read(row["record_length"])
    if body[:2] == b"\x1f\x8b":
        body = zlib.decompressobj(31).decompress(body)
    head, http, payload = body.split(b"\r\n\r\n", 2)
    warc, fields = (
        {name.lower(): value for name, value in HEADER.findall(part.decode("utf-8", "replace"))}
        for part in (head, http)
    )
    return warc, fields, payload[: int(warc["content-length"]) - len(http) - 4]


def letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return SPACE.sub("", "".join(html.unescape(text).lower().split()))


def iter_texts(http: Row, payload: bytes) -> Iterator[str]:
    """Yield a page without its tags and scripts, then with them, as each charset reads it."""
    with suppress(zlib.error):
        payload = zlib.decompressobj(31).decompress(payload)
    stated = CHARSET.findall(http.get("content-type", "").encode() + b"\n" + payload[:4096])
    for charset in dict.fromkeys(("utf-8", *(one.decode().lower() for one in stated), "cp1252")):
        with suppress(LookupError):
            text = payload.decode(charset, "replace")
            yield letters(TAG.sub(" ", text))
            plain = ESCAPE.sub(lambda it: chr(int(it[1], 16)) if it[1] else " ", text)
            yield letters(plain)


def check_record(path: Path, row: Row) -> None:
    """Compare a row with the record that it comes from."""
    try:
        warc, http, payload = read_record(path, row)
        fetched_at = datetime.fromisoformat(warc["warc-date"])
    except (OSError, KeyError, ValueError, zlib.error) as error:
        wrong(f"{row['id']}: no record at {row['warc']}@{row['record_offset']} ({error!r})")
        return
    CHECKED["records"] += 1
    digest = f"sha1:{base64.b32encode(hashlib.sha1(payload).digest()).decode()}"
    CHECKED["records without a digest"] += row["payload_digest"] is None
    if (row["payload_digest"] or digest).lower() != digest.lower():
        wrong(f"{row['id']}: the payload is another than its digest says")
    if row["domain"] not in covering(warc.get("warc-target-uri", ""), row["domain"]):
        wrong(f"{row['id']}: the record is of {warc.get('warc-target-uri')!r}")
    if fetched_at != datetime.fromisoformat(str(row["fetched_at"])):
        wrong(f"{row['id']}: fetched at {fetched_at}, not at {row['fetched_at']}")
    missing = sentences = [part for it in SENTENCE.split(row["text"]) if (part := letters(it))]
    for page in iter_texts(http, payload):
        missing = [part for part in missing if part not in page]
        if len(missing) <= len(sentences) * 0.1:
            return
    wrong(f"{row['id']}: only {1 - len(missing) / len(sentences):.0%} of its sentences are in it")


def check_rows(given: Any, shard: Row, part: int, parts: int) -> Counter[str]:
    """Check every `parts`-th batch of rows of a shard, and return what was counted."""
    CHECKED.clear()
    for row in rows_of(given.export / shard["path"], part, parts):
        CHECKED["rows"] += 1
        check_policy(row, given.statements, given.rules)
        if not given.entries.isdisjoint(covering(row["url"], row["domain"])):
            wrong(f"{row['id']}: {row['url']} is on a list")
        warc = given.warcs / row["warc"] if given.warcs and row["warc"] else None
        if warc is None or not warc.exists() or row["record_length"] is None:
            CHECKED["rows without their record at hand"] += 1
        else:
            check_record(warc, row)
    return CHECKED.copy()


def check_export(given: Any) -> Counter[str]:
    """Check everything; return what was counted. Many rows are shared by several processes."""
    check_signature(given.export, given.key)
    manifest = json.loads((given.export / "manifest.json").read_text("utf-8"))
    check_files(given.export, manifest["files"])
    given.statements, given.entries = read_statements(given.export), read_entries(given.list)
    given.rules, found = manifest["selection"]["rules"], CHECKED.copy()
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for shard in manifest["shards"]:
            parts = min(cpu_count(), shard["articles"] // AT_ONCE + 1)
            tasks = [given] * parts, [shard] * parts, range(parts), [parts] * parts
            counts = sum((pool.map if parts > 1 else map)(check_rows, *tasks), Counter())
            if counts["rows"] != shard["articles"]:
                counts[f"WRONG {shard['path']} has {counts['rows']} rows"] += 1
            found += counts
    return found


def main() -> int:
    """Check the export that the command line names."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawTextHelpFormatter)
    parser.add_argument("export", type=Path)
    parser.add_argument("--key", type=Path, help="public Ed25519 key of the signer, PEM")
    parser.add_argument("--warcs", type=Path, help="folder with the WARC files")
    parser.add_argument("--list", type=Path, action="append", default=[], help="opt-out list")
    try:
        found = check_export(parser.parse_args())
    except (OSError, ValueError, KeyError, TypeError) as error:
        found = CHECKED + Counter([f"WRONG this export cannot be read to its end: {error}"])
    problems = [text for text in found if text.startswith("WRONG")]
    counted = ", ".join(f"{name}: {found[name]}" for name in sorted({*found} - {*problems}))
    verdict = "something is wrong" if problems else "nothing is wrong"
    sys.stdout.write("\n".join((*problems[:50], counted, verdict, "")))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
