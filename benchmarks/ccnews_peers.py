"""Measure other WARC pipelines on the same file, each in its own virtual environment.

uv creates the environments under `benchmarks/peers` (not in git). A peer that cannot be installed
or does not finish counts as not measured, never as slower.
"""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PEERS_FOLDER = Path(__file__).parent / "peers"
_LONGEST_SECONDS = 3600

_WARCIO = """
import trafilatura
from warcio.archiveiterator import ArchiveIterator

def work(path):
    pages = 0
    with open(path, "rb") as stream:
        for record in ArchiveIterator(stream):
            if record.rec_type != "response":
                continue
            if "html" not in (record.http_headers.get_header("Content-Type") or ""):
                continue
            trafilatura.extract(record.content_stream().read(), include_comments=False)
            pages += 1
    return pages
"""

_DATATROVE = """
import tempfile
from pathlib import Path
from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.readers import WarcReader
from datatrove.pipeline.writers import ParquetWriter

def work(path):
    path = Path(path)
    with tempfile.TemporaryDirectory() as folder:
        LocalPipelineExecutor(
            pipeline=[
                WarcReader(str(path.parent), glob_pattern=path.name),
                Trafilatura(timeout=60),
                ParquetWriter(folder + "/out"),
            ],
            tasks=1,
            workers=1,
            logging_dir=folder + "/logs",
        ).run()
    return 0
"""

_NEWS_PLEASE = """
from newsplease import NewsPlease
from warcio.archiveiterator import ArchiveIterator

def work(path):
    pages = 0
    with open(path, "rb") as stream:
        for record in ArchiveIterator(stream):
            if record.rec_type != "response":
                continue
            if "html" not in (record.http_headers.get_header("Content-Type") or ""):
                continue
            try:
                NewsPlease.from_warc(record, decode_errors="replace", fetch_images=False)
            except Exception:
                pass
            pages += 1
    return pages
"""

# What each measures around its work: the CPU time of the process and of the ones it started.
_MEASURE = """
import json, os, sys
before = os.times()
work(sys.argv[1])
after = os.times()
cpu = sum(after[:4]) - sum(before[:4])
print("\\n" + json.dumps({"cpu_seconds": cpu}))
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A pipeline to compare with, what it needs, and how many times faster we aim to be."""

    name: str
    packages: tuple[str, ...]
    script: str
    aim: float


PEERS = (
    Peer("news-please", ("news-please", "lxml_html_clean"), _NEWS_PLEASE, 40),
    Peer(
        "datatrove",
        ("datatrove[processing,io]", "warcio", "trafilatura", "pyarrow"),
        _DATATROVE,
        10,
    ),
    Peer("warcio + trafilatura", ("warcio", "trafilatura"), _WARCIO, 6),
)


def measure_peer(peer: Peer, warc: Path) -> float | None:
    """Return the CPU seconds a peer takes for a WARC; None when it cannot be measured."""
    python = _environment(peer)
    if python is None:
        return None
    command = [str(python), "-c", peer.script + _MEASURE, str(warc)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LONGEST_SECONDS, check=True
        )
        return float(json.loads(done.stdout.strip().splitlines()[-1])["cpu_seconds"])
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        print(f"{peer.name} did not finish: {error}", file=sys.stderr)
        return None


def _environment(peer: Peer) -> Path | None:
    """Return the Python of the peer's environment, made when it is not there yet."""
    folder = PEERS_FOLDER / "-".join(peer.name.replace("+", " ").split())
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if ready.exists():
        return python
    uv = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
    try:
        subprocess.run([uv, "venv", "-q", "--clear", "-p", sys.executable, str(folder)], check=True)
        install = [uv, "pip", "install", "-q", "--python", str(python), *peer.packages]
        subprocess.run(install, check=True)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"{peer.name} cannot be installed: {error}", file=sys.stderr)
        return None
    ready.touch()
    return python
