"""Measure article extraction on labelled pages, beside other extractors in the same run.

Peers that are not installed are named and left out. Speed is pages per CPU second, in turns.
The scores of unseen pages come from `python -m benchmarks.train_articles`: the model of the package
has seen these pages, so the table here is called "seen".
"""

import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.article_pages import (
    Extracted,
    LabelledPage,
    by_set,
    iter_labelled_pages,
    mean_scores,
    page_scores,
)
from news_platform.articles.extract import extract_article
from news_platform.html.decode import html_text
from news_platform.settings import load_settings

RESULTS = Path(__file__).parent / "results" / "articles.json"
_SHOWN = ("f1", "kept", "dropped", "title", "authors", "day")

Extract = Callable[[str, str], Extracted]


def main() -> None:
    """Score every installed extractor on every set, and print one table per extractor."""
    data = load_settings(os.environ).bench_data
    if not data:
        print("articles: skipped, set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    pages = list(iter_labelled_pages(Path(data) / "articles"))
    results = {name: measure(name, extract, pages) for name, extract in installed().items()}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    ours, theirs = results["ours"]["corpus"], results["trafilatura"]["corpus"]
    ratio = ours["pages_per_second"] / theirs["pages_per_second"]
    print(f"pages per second beside trafilatura: {ratio:.2f} (at least 2)")


def installed() -> dict[str, Extract]:
    """Return our extractor and its installed peers."""
    found: dict[str, Extract] = {"ours": _ours}
    for module, extract in _PEERS.items():
        if find_spec(module) is None:
            print(f"articles: {module} is not installed and not compared")
        else:
            found[module] = extract
    return found


def measure(
    name: str, extract: Extract, pages: Sequence[LabelledPage]
) -> dict[str, dict[str, float]]:
    """Return the scores of one extractor by set."""
    texts = {page.key: html_text(page.html) for page in pages}
    extract(texts[pages[0].key], "")  # the first call imports and loads models
    scores, seconds = {}, 0.0
    for page in pages:
        started = time.process_time()
        found = extract(texts[page.key], page.url)
        seconds += time.process_time() - started
        scores[page.key] = page_scores(page, found)
    means = {
        group: mean_scores([scores[page.key] for page in members])
        for group, members in by_set(pages).items()
    }
    means["corpus"]["pages_per_second"] = len(pages) / seconds
    for group, values in means.items():
        shown = " ".join(f"{key} {values[key]:.3f}" for key in _SHOWN if key in values)
        print(f"{name:<14}{group:<16}{shown}", flush=True)
    print(f"{name:<14}{len(pages) / seconds:.1f} pages per CPU second", flush=True)
    return means


def _ours(html: str, url: str) -> Extracted:
    article = extract_article(html, url)
    at = article.published_at.isoformat() if article.published_at else ""
    return Extracted(article.clean_text, article.title, article.authors, at)


def _trafilatura(html: str, url: str) -> Extracted:
    from trafilatura import bare_extraction

    found = bare_extraction(html, url=url or None, include_comments=False, with_metadata=True)
    if found is None:
        return Extracted()
    known = found if isinstance(found, dict) else found.as_dict()
    authors = tuple(name for name in (known["author"] or "").split("; ") if name)
    return Extracted(known["text"] or "", known["title"] or "", authors, known["date"] or "")


def _resiliparse(html: str, url: str) -> Extracted:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    return Extracted(extract_plain_text(HTMLTree.parse(html), main_content=True, alt_texts=False))


def _readability(html: str, url: str) -> Extracted:
    from lxml.html import fromstring
    from readability import Document

    document = Document(html)
    tree = fromstring(document.summary())
    for element in tree.iter("p", "div", "li", "h1", "h2", "h3", "h4", "br", "tr", "td", "pre"):
        element.tail = f"\n{element.tail or ''}"
    text = "".join(map(str, tree.itertext()))
    return Extracted(text, document.short_title() or "")


def _newspaper(html: str, url: str) -> Extracted:
    from newspaper import Article

    page = Article(url or "http://page.example/")
    page.download(input_html=html)
    page.parse()
    at = page.publish_date.isoformat() if page.publish_date else ""
    return Extracted(page.text or "", page.title or "", tuple(page.authors), at)


def _goose(html: str, url: str) -> Extracted:
    from goose3 import Goose

    page = Goose({"enable_image_fetching": False}).extract(raw_html=html, url=url or None)
    at = page.publish_datetime_utc.isoformat() if page.publish_datetime_utc else ""
    return Extracted(page.cleaned_text or "", page.title or "", tuple(page.authors), at)


_PEERS: dict[str, Extract] = {
    "trafilatura": _trafilatura,
    "resiliparse": _resiliparse,
    "readability": _readability,
    "newspaper": _newspaper,
    "goose3": _goose,
}


if __name__ == "__main__":
    main()
