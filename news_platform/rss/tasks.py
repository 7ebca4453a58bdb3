"""What runs in the killable worker processes: one feed parsed, one page read; plain values only."""

from dataclasses import dataclass, replace

from news_platform.articles.extract import Article, extract_article
from news_platform.html.decode import content_type_charset
from news_platform.isolation.worker import report
from news_platform.rss.feeds import Feed, parse_feed
from news_platform.text.language import detect

PARSE_TARGET = "news_platform.rss.tasks:parse"
EXTRACT_TARGET = "news_platform.rss.tasks:extract"
# What a hostile feed may cost; real ones take milliseconds.
PARSE_DEADLINE_SECONDS = 5.0
PARSE_MEMORY_BYTES = 256 * 1024 * 1024
# A page of 10 MB is read within these.
EXTRACT_DEADLINE_SECONDS = 20.0
EXTRACT_MEMORY_BYTES = 768 * 1024 * 1024

# A feed that lists more than this is a dump of an archive; the newest stand first.
_MAX_ENTRIES = 1_000


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes of an answer and where they came from."""

    body: bytes
    content_type: str
    url: str


def parse(document: Document) -> Feed:
    """Parse a feed."""
    feed = parse_feed(document.body, document.content_type, document.url)
    return replace(feed, entries=feed.entries[:_MAX_ENTRIES])


def extract(document: Document) -> Article:
    """Read the article of a page."""
    # The first call loads the language model; that is not this page's fault.
    detect("ready")
    report("ready")
    charset = content_type_charset(document.content_type)
    return extract_article(document.body, document.url, charset)
