"""Read the labelled article pages under NEWS_PLATFORM_BENCH_DATA, and score texts against them.

Scores are those of the shared scorers: body by 4-word shingles, snippets by folded text, title and
authors exact after folding, day as the label's zone allows.
"""

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from news_platform.web.urls import registrable_domain

NEWS_SETS = ("benchmark", "publishers")
_WORD = re.compile(r"\w+")
_CANONICAL = re.compile(
    rb'(?:rel=["\']?canonical["\']?[^>]{0,40}href|property=["\']og:url["\'][^>]{0,40}content)'
    rb'=["\'](https?://[^"\']+)'
)


@dataclass(frozen=True, slots=True)
class LabelledPage:
    """One page with what is known of its article; what is not labelled is empty."""

    key: str
    url: str
    site: str
    html: bytes = field(repr=False)
    body: str = field(repr=False)
    must_have: tuple[str, ...]
    must_not_have: tuple[str, ...]
    title: str
    authors: tuple[str, ...]
    published_at: str

    @property
    def set_name(self) -> str:
        """Return the set that the page belongs to."""
        return self.key.partition("/")[0]


def iter_labelled_pages(articles: Path) -> Iterator[LabelledPage]:
    """Yield all pages: benchmark, publishers, then the sets of the corpus by name."""
    known = json.loads((articles / "benchmark" / "ground-truth.json").read_text())
    for key, label in sorted(known.items()):
        given = {"url": label.get("url"), "body": label["articleBody"]}
        yield _labelled_page(articles / "benchmark", key, given)
    folders = [articles / "publishers", *sorted((articles / "corpus").iterdir())]
    for folder in folders:
        for path in sorted((folder / "truth").glob("*.json")):
            yield _labelled_page(folder, path.stem, json.loads(path.read_text()))


def page_html(articles: Path, key: str) -> bytes:
    """Return the bytes of a page, given its key."""
    name, _, own = key.partition("/")
    folder = articles / name if name in NEWS_SETS else articles / "corpus" / name
    return _read_html(folder, own)


def _read_html(folder: Path, key: str) -> bytes:
    return gzip.decompress((folder / "html" / f"{key}.html.gz").read_bytes())


def _labelled_page(folder: Path, key: str, label: Mapping[str, object]) -> LabelledPage:
    page = _read_html(folder, key)
    url = str(label.get("url") or "")
    return LabelledPage(
        key=f"{folder.name}/{key}",
        url=url,
        site=str(label.get("site") or page_site(page, url) or key),
        html=page,
        body=str(label.get("body") or ""),
        must_have=_texts(label.get("must_have")),
        must_not_have=_texts(label.get("must_not_have")),
        title=str(label.get("title") or ""),
        authors=_texts(label.get("authors")),
        published_at=str(label.get("published_at") or ""),
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def page_url(page: bytes, url: str) -> str:
    """Return the address of a page: the one that is labelled, else the one that it states."""
    found = _CANONICAL.search(page)
    return url or (found[1].decode("utf-8", "replace") if found else "")


def page_site(page: bytes, url: str) -> str:
    """Return the registrable domain of a page, or ''."""
    host = urlsplit(page_url(page, url)).hostname
    return registrable_domain(host) or host if host else ""


@dataclass(frozen=True, slots=True)
class Extracted:
    """What an extractor found on one page."""

    text: str = ""
    title: str = ""
    authors: tuple[str, ...] = ()
    published_at: str = ""


def page_scores(page: LabelledPage, found: Extracted) -> dict[str, float]:
    """Return the scores of one page, for what is labelled of it."""
    scores: dict[str, float] = {}
    if page.body:
        scores["precision"], scores["recall"] = precision_recall(found.text, page.body)
    folded = fold(found.text)
    if kept := [fold(snippet) in folded for snippet in page.must_have if fold(snippet)]:
        scores["kept"] = sum(kept) / len(kept)
    if dropped := [fold(s) not in folded for s in page.must_not_have if fold(s)]:
        scores["dropped"] = sum(dropped) / len(dropped)
    if page.title:
        scores["title"] = fold(found.title) == fold(page.title)
    if page.authors:
        scores["authors"] = set(map(fold, found.authors)) == set(map(fold, page.authors))
    if _day(page.published_at):
        scores["day"] = _is_same_day(found.published_at, page.published_at)
    return scores


def mean_scores(scores: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each score, and the F1 of mean precision and mean recall."""
    values: dict[str, list[float]] = {}
    for one in scores:
        for name, value in one.items():
            values.setdefault(name, []).append(value)
    means = {name: sum(found) / len(found) for name, found in values.items()}
    if "precision" in means:
        means["f1"] = harmonic_mean(means["precision"], means["recall"])
    return means


def harmonic_mean(precision: float, recall: float) -> float:
    """Return the F1 of a precision and a recall."""
    both = precision + recall
    return 2 * precision * recall / both if both else 0.0


def precision_recall(found: str, wanted: str) -> tuple[float, float]:
    """Return the shares of 4-word shingles that are right, and that were found."""
    ours, theirs = _shingles(found), _shingles(wanted)
    hit = (ours & theirs).total()
    return (hit / ours.total() if ours else 0.0), hit / theirs.total()


def _shingles(text: str) -> Counter[tuple[str, ...]]:
    words = _WORD.findall(text)
    if not words:
        return Counter()
    return Counter(tuple(words[i : i + 4]) for i in range(max(len(words) - 3, 1)))


def fold(text: str) -> str:
    """Return the words of a text in lower case."""
    return " ".join(_WORD.findall(text.lower()))


def _moment(written: str) -> datetime | None:
    try:
        return datetime.fromisoformat(written.replace("Z", "+00:00"))
    except ValueError:
        return None


def _day(written: str) -> str:
    moment = _moment(written)
    if moment is None:
        found = re.match(r"\d{4}-\d\d-\d\d", written)
        return found[0] if found else ""
    return (moment.astimezone(UTC) if moment.tzinfo else moment).date().isoformat()


def _is_same_day(found: str, label: str) -> bool:
    """Return True if the days agree; a label without a time is in a zone that it does not name."""
    if _day(found) == _day(label):
        return True
    moment = _moment(found)
    if len(label) > 10 or len(found) <= 10 or moment is None or moment.tzinfo is None:
        return False
    earliest, latest = moment - timedelta(hours=12), moment + timedelta(hours=14)
    days = [at.astimezone(UTC).date().isoformat() for at in (earliest, latest)]
    return days[0] <= label <= days[1]


def in_sample(key: str, every: int) -> bool:
    """Return True for about one in `every` pages, always the same ones."""
    return zlib.crc32(key.encode()) % every == 0


def by_set(pages: Sequence[LabelledPage]) -> dict[str, list[LabelledPage]]:
    """Return the pages of each set, and all pages of the corpus as `corpus`."""
    sets: dict[str, list[LabelledPage]] = {}
    for page in pages:
        sets.setdefault(page.set_name, []).append(page)
    return sets | {"corpus": [page for page in pages if page.set_name not in NEWS_SETS]}
