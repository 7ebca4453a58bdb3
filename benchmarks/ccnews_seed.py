"""A plain script of the seed's design, and our command beside it: speed and memory on one WARC.

The script is what the first document of the crawl describes: fastwarc reads the records,
resiliparse decodes, parses, extracts and detects, and Polars writes Parquet partitioned by day,
language and file. It keeps all rows in memory, verifies nothing and writes no other dataset. What
both take for the first records alone is taken off: a real WARC is twenty times as large.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import polars as pl
from fastwarc.warc import ArchiveIterator, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.lang import detect_fast

from benchmarks import RESULTS_FOLDER
from benchmarks.ccnews_command import FIRST_RECORDS, first_members
from benchmarks.ccnews_runs import NAME
from news_platform.settings import load_settings
from news_platform.web.urls import reversed_domain, surt

RESULTS = RESULTS_FOLDER / "ccnews_seed.json"

# 240 MB of pages, as for the whole command beside the bare loop.
_COPIES = 4
_TURNS = 3
_HTML = ("text/html", "application/xhtml+xml")
_TEXTS = pl.List(pl.String())
_SCHEMA = {
    "uri": pl.String(),
    "tree": pl.String(),
    "text": pl.String(),
    "langs": _TEXTS,
    "confs": pl.List(pl.Int64()),
    "http_date": pl.String(),
    "http_last_modified": pl.String(),
    "http_charset": pl.String(),
    "surt_uri": pl.String(),
    "host": pl.String(),
    "year": pl.String(),
    "month": pl.String(),
    "day": pl.String(),
    "main_lang": pl.String(),
    "filename": pl.String(),
}


def main() -> None:
    """Print and store our speed beside the script's, and our share of its memory."""
    data = load_settings(os.environ).bench_data
    if not data:
        print("ccnews_seed: skipped, set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    with tempfile.TemporaryDirectory(prefix="ccnews-seed-") as folder:
        body = (Path(data) / "warc" / "bench.warc.gz").read_bytes()
        whole, start = Path(folder) / "whole" / NAME, Path(folder) / "start" / NAME
        for path, part in ((whole, body * _COPIES), (start, first_members(body, FIRST_RECORDS))):
            path.parent.mkdir()
            path.write_bytes(part)
        turns = [(_turn(whole), _turn(start)) for _ in range(_TURNS)]
    speed = median((a[0] - c[0]) / (b[0] - d[0]) for (a, b), (c, d) in turns)
    memory = median(ours[1] / seed[1] for (seed, ours), _ in turns)
    print(f"speed beside the seed's script  {speed:.2f} (at least 1.0)")
    print(f"share of its memory             {memory:.2f} (at most 0.33)")
    RESULTS.write_text(
        json.dumps({"speed": round(speed, 2), "memory": round(memory, 2)}, indent=1) + "\n"
    )


def _turn(warc: Path) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return CPU seconds and peak memory of both, each in processes of its own."""
    python, ours = sys.executable, ["ccnews", "collect", str(warc), "--workers", "1"]
    with tempfile.TemporaryDirectory(prefix="ccnews-seed-") as folder:
        return (
            _cost([python, "-m", "benchmarks.ccnews_seed", str(warc), f"{folder}/seed"]),
            _cost([python, "-m", "news_platform.cli", *ours, "--root", f"{folder}/ours"]),
        )


def _cost(command: list[str]) -> tuple[float, float]:
    """Return CPU seconds of a command and its processes, and the memory of the largest."""
    script = (
        "import json, resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=2)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command], check=True, capture_output=True, text=True
    )
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


def seed_script(warc: Path, folder: Path) -> int:
    """Write the pages of a WARC as partitioned Parquet; return their number."""
    rows = [_row(record, warc.name) for record in _html_records(warc)]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    by = ["year", "month", "day", "main_lang", "filename"]
    frame.write_parquet(folder, partition_by=by, mkdir=True)
    return frame.height


def _html_records(warc: Path):  # type: ignore[no-untyped-def]  # fastwarc's records are untyped
    records = ArchiveIterator(
        str(warc), record_types=WarcRecordType.response, parse_http=False, quirks_mode=True
    )
    for record in records:
        record.parse_http()
        if record.http_content_type in _HTML:
            yield record


def _row(record, name: str) -> tuple[object, ...]:  # type: ignore[no-untyped-def]  # as above
    body = record.reader.read()
    html = bytes_to_str(body, record.http_charset or detect_encoding(body, from_html_meta=True))
    text = extract_plain_text(HTMLTree.parse(html), main_content=True)
    ranks = detect_fast(text, n_results=3)
    uri = record.headers["WARC-Target-URI"]
    date, changed = record.http_date, record.http_last_modified
    stamp = name.split("-")[2]
    return (
        uri,
        html,
        text,
        [language for language, _ in ranks],
        [rank for _, rank in ranks],
        date.isoformat() if date else None,
        changed.isoformat() if changed else None,
        record.http_charset,
        surt(uri),
        reversed_domain(uri),
        stamp[:4],
        stamp[4:6],
        stamp[6:8],
        ranks[0][0] if ranks else "unknown",
        name,
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(seed_script(Path(sys.argv[1]), Path(sys.argv[2])), file=sys.stderr)
    else:
        main()
