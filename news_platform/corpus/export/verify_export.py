"""Check an export of News Platform without any of its code.

python verify_export.py EXPORT --key PUBLIC.pem [--warcs FOLDER] [--list FILE]...

The public key must come from the signer by another way: a key inside the export proves nothing.
With --key, every change to a signed export by somebody else is found. With --warcs, every row of
the crawl is compared with its record, also if the signer lies. With --list, no row may be of a
domain, folder or address of an opt-out list. Rows of feeds name only when they were fetched: their
pages can be checked while their publisher, or the exporter, keeps them.

It needs Python 3.11, pyarrow, and cryptography for --key. Exit code 0: nothing is wrong.
"""

import argparse
import base64
import hashlib
import html
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]
CHECKED: Counter[str] = Counter()
REFUSALS = {"refuse", "conflicting"}
LEAST_SENTENCES = 0.9
SENTENCE = re.compile(r"(?<=[.!?。！？…])\s+|\n")
TAG = re.compile(r"<!--.*?-->|<[^>]*>", re.S)
SPACE = re.compile(r"[\W_]+")
CHARSET = re.compile(rb"charset=[\"' ]*([\w-]+)", re.I)


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def wrong(text: str) -> None:
    """Count a problem, and print the first fifty."""
    CHECKED["problems"] += 1
    if CHECKED["problems"] <= 50:
        say(f"WRONG {text}")


def check_signature(folder: Path, key: Path | None) -> None:
    """Check that the holder of the key signed the manifest."""
    if key is None:
        say("No --key: who made this export is not checked. A key inside it would prove nothing.")
        return
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        public = load_pem_public_key(key.read_bytes())
        if not isinstance(public, Ed25519PublicKey):
            raise ValueError("not an Ed25519 key")
        signature = base64.b64decode((folder / "manifest.sig").read_bytes())
        public.verify(signature, (folder / "manifest.json").read_bytes())
        CHECKED["signatures"] += 1
    except FileNotFoundError as error:
        wrong(f"manifest.json is not signed, or there is no key: {error.filename}")
    except (InvalidSignature, ValueError):
        wrong("manifest.sig is not the signature of manifest.json by this key")


def check_files(folder: Path, manifest: Row) -> None:
    """Check that the files are exactly those of the manifest."""
    wanted = manifest["files"]
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in sorted(names - set(wanted) - {"manifest.json", "manifest.sig"}):
        wrong(f"{name} is not in the manifest")
    for shard in manifest["shards"]:
        if wanted.get(shard["path"]) != shard["sha256"]:
            wrong(f"{shard['path']}: the manifest names two digests")
    for name, digest in wanted.items():
        if name not in names:
            wrong(f"{name} is missing")
            continue
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                wrong(f"{name} is another file than the manifest names")
        CHECKED["files"] += 1


def read_statements(folder: Path) -> Row:
    """Return the statements by id; the id is the digest of the other fields."""
    found = {}
    for line in (folder / "statements.jsonl").read_text("utf-8").splitlines():
        statement = json.loads(line)
        name = statement.pop("id")
        if hashlib.sha256(json.dumps(statement).encode()).hexdigest()[:16] != name:
            wrong(f"statement {name} was changed")
        found[name] = statement
    return found


def rows_of(path: Path) -> Iterator[Row]:
    """Yield the rows of a shard, up to where it cannot be read."""
    try:
        if path.suffix == ".parquet":
            for batch in pq.ParquetFile(path).iter_batches(1000):
                yield from batch.to_pylist()
        else:
            with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
                yield from map(json.loads, stream.read().decode().rstrip("\n").split("\n"))
    except (OSError, ValueError) as error:
        wrong(f"{path.name} cannot be read: {error}")


def check_policy(row: Row, statements: Row, rules: list[str]) -> None:
    """Check that nothing is refused, and that every statement named is shipped."""
    stated = {usage["rule"]: usage for usage in row["usage"]}
    for rule in set(rules) - set(stated):
        wrong(f"{row['id']}: no verdict about {rule}")
    for rule, usage in stated.items():
        if usage["verdict"] in REFUSALS:
            wrong(f"{row['id']}: {rule} is refused")
        if usage["verdict"] == "allow" and not usage["statements"]:
            wrong(f"{row['id']}: no statement allows {rule}")
        for name in set(usage["statements"]) - set(statements):
            wrong(f"{row['id']}: statement {name} is not in the export")


def read_entries(files: list[Path]) -> list[str]:
    """Return the entries of opt-out lists: one per line, before any comma."""
    lines = [line.strip().lower() for file in files for line in file.read_text().splitlines()]
    found = [line.split(",")[0].strip() for line in lines if line and not line.startswith("#")]
    return [entry.partition("://")[2] or entry for entry in found]


def is_covered(url: str, entries: list[str]) -> bool:
    """Return whether an entry names the address, a folder above it, or its domain."""
    rest = url.lower().partition("://")[2].removeprefix("www.").rstrip("/")
    host = rest.partition("/")[0].partition(":")[0]
    for entry in entries:
        name = entry.removeprefix("www.").rstrip("/")
        if rest == name or rest.startswith(f"{name}/"):
            return True
        if "." in name and "/" not in name and f".{host}".endswith(f".{name}"):
            return True
    return False


def read_record(path: Path, row: Row) -> tuple[Row, Row, bytes]:
    """Return the WARC headers, the HTTP headers and the payload of the record of a row."""
    with path.open("rb") as file:
        file.seek(row["record_offset"])
        body = file.read(row["record_length"])
    if body[:2] == b"\x1f\x8b":
        body = zlib.decompressobj(31).decompress(body)
    head, _, rest = body.partition(b"\r\n\r\n")
    warc = headers(head)
    http, _, payload = rest[: int(warc["content-length"])].partition(b"\r\n\r\n")
    return warc, headers(http), payload


def headers(head: bytes) -> Row:
    """Return header lines by their names in lower case."""
    lines = (line.partition(":") for line in head.decode("utf-8", "replace").split("\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def page_text(http: Row, payload: bytes) -> str:
    """Return the letters and digits of a page without its tags."""
    if payload[:2] == b"\x1f\x8b":
        payload = zlib.decompressobj(31).decompress(payload)
    stated = CHARSET.search(http.get("content-type", "").encode()) or CHARSET.search(payload[:4096])
    text = payload.decode("utf-8", "replace")
    if "\ufffd" in text:
        charset = stated[1].decode().lower() if stated else "utf-8"
        try:
            text = payload.decode("cp1252" if charset == "utf-8" else charset, "replace")
        except LookupError:
            CHECKED["pages of an unknown charset"] += 1
    return SPACE.sub("", html.unescape(TAG.sub(" ", text))).lower()


def check_record(path: Path, row: Row) -> None:
    """Compare a row with the record that it comes from."""
    try:
        warc, http, payload = read_record(path, row)
        fetched_at = datetime.fromisoformat(warc["warc-date"])
    except (OSError, KeyError, ValueError, zlib.error) as error:
        wrong(f"{row['id']}: no record at {row['warc']}@{row['record_offset']} ({error!r})")
        return
    CHECKED["records"] += 1
    digest = "sha1:" + base64.b32encode(hashlib.sha1(payload).digest()).decode()
    if row["payload_digest"] is None:
        CHECKED["records without a digest"] += 1
    elif row["payload_digest"].lower() != digest.lower():
        wrong(f"{row['id']}: the payload is another than its digest says")
    host = urlsplit(warc.get("warc-target-uri", "")).hostname or ""
    if not f".{host}".endswith(f".{row['domain']}"):
        wrong(f"{row['id']}: the record is of {host!r}")
    stated = row["fetched_at"]
    if fetched_at != (datetime.fromisoformat(stated) if isinstance(stated, str) else stated):
        wrong(f"{row['id']}: fetched at {fetched_at}, not at {stated}")
    page = page_text(http, payload)
    parts = [part for it in SENTENCE.split(row["text"]) if (part := SPACE.sub("", it).lower())]
    share = sum(part in page for part in parts) / max(len(parts), 1)
    if share < LEAST_SENTENCES:
        wrong(f"{row['id']}: {share:.0%} of its sentences are in the record")


def main() -> int:
    """Check the export that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("export", type=Path)
    parser.add_argument("--key", type=Path, help="public Ed25519 key of the signer, PEM")
    parser.add_argument("--warcs", type=Path, help="folder with the WARC files")
    parser.add_argument("--list", type=Path, action="append", default=[], help="opt-out list")
    given = parser.parse_args()
    check_signature(given.export, given.key)
    manifest = json.loads((given.export / "manifest.json").read_text("utf-8"))
    check_files(given.export, manifest)
    statements, entries = read_statements(given.export), read_entries(given.list)
    for shard in manifest["shards"]:
        count = 0
        for row in rows_of(given.export / shard["path"]):
            count += 1
            check_policy(row, statements, manifest["selection"]["rules"])
            if entries and is_covered(row["url"], entries):
                wrong(f"{row['id']}: {row['url']} is on a list")
            path = given.warcs / row["warc"] if given.warcs and row["warc"] else None
            if path is None or not path.exists() or row["record_length"] is None:
                CHECKED["rows without their record at hand"] += 1
            else:
                check_record(path, row)
        CHECKED["rows"] += count
        if count != shard["articles"]:
            wrong(f"{shard['path']} has {count} rows, the manifest {shard['articles']}")
    say(", ".join(f"{what}: {count}" for what, count in sorted(CHECKED.items())))
    say("something is wrong" if CHECKED["problems"] else "nothing is wrong")
    return 1 if CHECKED["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
