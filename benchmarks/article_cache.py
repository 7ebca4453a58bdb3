"""Labelled pages in, their blocks out: read once, then kept in a folder until the code changes."""

import hashlib
import pickle
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import news_platform
from benchmarks.article_labels import LabelledBlocks, label_blocks
from benchmarks.article_pages import LabelledPage, iter_labelled_pages

_PROCESSES = 2
_PAGES_AT_ONCE = 16
# The packages whose code decides what the blocks of a page are.
_READING = ("articles", "html", "text")


def read_labelled_blocks(articles: Path, cache: Path | None) -> list[LabelledBlocks]:
    """Return the blocks of all labelled pages; `cache` is a folder to keep them in, or None."""
    if cache is None:
        return list(_labelled(iter_labelled_pages(articles)))
    path = cache / f"blocks-{_code_digest()}.pickle"
    if path.exists():
        # The file holds what this program wrote itself.
        found: list[LabelledBlocks] = pickle.loads(path.read_bytes())
        return found
    blocks = list(_labelled(iter_labelled_pages(articles)))
    cache.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(blocks, protocol=pickle.HIGHEST_PROTOCOL))
    return blocks


def _labelled(pages: Iterable[LabelledPage]) -> Iterator[LabelledBlocks]:
    with ProcessPoolExecutor(_PROCESSES) as pool:
        found = pool.map(_without_tree, pages, chunksize=_PAGES_AT_ONCE)
        yield from (page for page in found if page is not None)


def _without_tree(page: LabelledPage) -> LabelledBlocks | None:
    """Return the blocks without the tree of the page, which cannot be stored."""
    labelled = label_blocks(page)
    if labelled is None:
        return None
    labelled.blocks.elements.clear()
    return replace(labelled, page=replace(page, html=b""))


def _code_digest() -> str:
    package = Path(news_platform.__file__).parent
    paths = [path for name in _READING for path in sorted((package / name).rglob("*.py"))]
    own = Path(__file__).parent
    digest = hashlib.sha256()
    for path in (*paths, own / "article_labels.py", own / "article_pages.py"):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
