"""Measure article extraction on labelled pages, beside other extractors in the same run.

Peers that are not installed are named and left out. `python -m benchmarks.articles --every 5` takes
every fifth page, for the slow peers; `--only NAME` measures one extractor and keeps the results of
the others. Also counted: dates on pages that state none. The scores of unseen pages come from
`python -m benchmarks.train_articles`: the model of the package has seen these pages, so the table
here is called "seen".
"""

import argparse
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks import RESULTS_FOLDER
from benchmarks.article_pages import (
    Extracted,
    LabelledPage,
    by_set,
    in_sample,
    iter_labelled_pages,
    mean_scores,
    page_scores,
)
from benchmarks.article_undated import iter_undated_pages
from news_platform.articles.extract import extract_article
from news_platform.html.decode import html_text
from news_platform.settings import load_settings

RESULTS = RESULTS_FOLDER / "articles.json"
_SHOWN = ("f1", "kept", "dropped", "title", "authors", "day")

# What peers raise on broken pages; ours must not.
_PEER_ERRORS = (ValueError, TypeError, AttributeError, LookupError, RecursionError, ImportError)

Extract = Callable[[str, str], Extracted]
Results = dict[str, dict[str, dict[str, float]]]


def main(arguments: Sequence[str] = ()) -> None:
    """Score every installed extractor on every set, and print one table per extractor."""
    options = _parser().parse_args(arguments)
    data = load_settings(os.environ).bench_data
    if not data:
        print("articles: skipped, set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    pages = [
        page
        for page in iter_labelled_pages(Path(data) / "articles")
        if in_sample(page.key, options.every)
    ]
    undated = list(iter_undated_pages(Path(data) / "pages"))
    results = _read_results(options.every) if options.only else {}
    for name, extract in installed().items():
        if not options.only or name in options.only:
            results[name] = measure(name, extract, pages)
            results[name]["undated"] = {"dated": dated_share(name, extract, undated)}
            _write_results(options.every, results)
    if {"ours", "trafilatura"} <= results.keys():
        ours, theirs = (results[name]["corpus"] for name in ("ours", "trafilatura"))
        ratio = ours["pages_per_second"] / theirs["pages_per_second"]
        print(f"pages per second beside trafilatura: {ratio:.2f} (at least 2)")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take every Nth page")
    parser.add_argument("--only", action="append", help="measure this extractor; repeatable")
    return parser


def _results_path(every: int) -> Path:
    return RESULTS if every == 1 else RESULTS.with_name(f"articles_every_{every}.json")


def _read_results(every: int) -> Results:
    path = _results_path(every)
    found: Results = json.loads(path.read_text()) if path.exists() else {}
    return found


def _write_results(every: int, results: Results) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    _results_path(every).write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def dated_share(name: str, extract: Extract, pages: Sequence[tuple[str, str, bytes]]) -> float:
    """Return the share of pages without a date on which the extractor finds one."""
    dated = [key for key, url, html in pages if extract(html_text(html), url).published_at]
    share = len(dated) / max(len(pages), 1)
    print(f"{name:<14}dates on {len(pages)} pages without one: {share:.3f}", flush=True)
    return share


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
    scores, seconds, failed = {}, 0.0, 0
    for page in pages:
        started = time.process_time()
        try:
            found = extract(texts[page.key], page.url)
        except _PEER_ERRORS as error:
            if name == "ours":
                raise
            failed += 1
            print(f"{name:<14}{page.key}: {type(error).__name__}", flush=True)
            found = Extracted()
        seconds += time.process_time() - started
        scores[page.key] = page_scores(page, found)
    means = {
        group: mean_scores([scores[page.key] for page in members])
        for group, members in by_set(pages).items()
    }
    means["corpus"] |= {"pages_per_second": len(pages) / seconds, "failed": failed}
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

    # By default it asks the sites for their pictures.
    page = Article(url or "http://page.example/", fetch_images=False)
    page.download(input_html=html)
    page.parse()
    at = page.publish_date.isoformat() if page.publish_date else ""
    return Extracted(page.text or "", page.title or "", tuple(page.authors), at)


def _boilerpy(html: str, url: str) -> Extracted:
    from boilerpy3.extractors import ArticleExtractor

    return Extracted(ArticleExtractor(raise_on_failure=False).get_content(html))


def _justext(html: str, url: str) -> Extracted:
    from justext import get_stoplist, justext

    # The language of a page must be known beforehand; most pages are English.
    found = justext(html.encode("utf-8", "replace"), get_stoplist("English"))
    return Extracted("\n".join(part.text for part in found if not part.is_boilerplate))


def _goose(html: str, url: str) -> Extracted:
    from goose3 import Goose

    page = Goose({"enable_image_fetching": False}).extract(raw_html=html, url=url or None)
    at = page.publish_datetime_utc.isoformat() if page.publish_datetime_utc else ""
    # Some of its authors are lists of names.
    authors = tuple(map(str, page.authors))
    return Extracted(page.cleaned_text or "", page.title or "", authors, at)


_PEERS: dict[str, Extract] = {
    "trafilatura": _trafilatura,
    "resiliparse": _resiliparse,
    "readability": _readability,
    "newspaper": _newspaper,
    "goose3": _goose,
    "boilerpy3": _boilerpy,
    "justext": _justext,
}


if __name__ == "__main__":
    main(sys.argv[1:])
