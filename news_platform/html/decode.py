"""Page bytes in, text out: by the header's charset, else the page's own, else by detection."""

from functools import lru_cache

from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5

_BOM = b"\xef\xbb\xbf"
# Below this share of broken characters a page that says UTF-8 is UTF-8 with a scratch (often just
# cut off within a character); above it the statement was wrong.
_SCRATCHED_SHARE = 0.002


def decoded(body: bytes, declared: str | None) -> tuple[str, bytes]:
    """Return the page as text and the same text as UTF-8; never fails."""
    encoding = _known(declared) or detect_encoding(body, from_html_meta=True)
    if encoding == "utf-8":
        body = body.removeprefix(_BOM)
        try:
            return body.decode(), body
        except UnicodeDecodeError:
            return _mended(body)
    text: str = bytes_to_str(body, encoding)
    return text, text.encode("utf-8", "replace")


def _mended(body: bytes) -> tuple[str, bytes]:
    text = body.decode("utf-8", "replace")
    if text.count("\ufffd") > max(1, _SCRATCHED_SHARE * len(text)):
        text = bytes_to_str(body, detect_encoding(body))
    return text, text.encode("utf-8", "replace")


@lru_cache(maxsize=1024)
def _known(declared: str | None) -> str | None:
    """Return the codec that browsers take for a charset label; None when they know none."""
    if not declared:
        return None
    codec: str | None = map_encoding_to_html5(declared, fallback_utf8=False)
    return codec
