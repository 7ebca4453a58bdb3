"""The bare loop that the pipeline is measured against: the same libraries and nothing else.

Iterate, read, decode, parse, extract, detect; no row is kept and no error is handled. It uses the
options of the product and the fastest known way to call each library.
"""

from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.lang import detect_fast

_HTML = ("text/html", "application/xhtml+xml")


def bare_loop(path: Path) -> int:
    """Process every HTML page of a WARC and return their number."""
    pages = 0
    records = ArchiveIterator(
        str(path), record_types=WarcRecordType.response, parse_http=False, quirks_mode=True
    )
    for record in records:
        record.parse_http()
        if record.http_content_type not in _HTML:
            continue
        body = record.reader.read()
        encoding = record.http_charset or detect_encoding(body, from_html_meta=True)
        html = bytes_to_str(body, encoding)
        tree = HTMLTree.parse(html)
        text = extract_plain_text(tree, main_content=True)
        detect_fast(text, n_results=3)
        pages += 1
    return pages
