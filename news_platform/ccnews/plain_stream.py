"""An uncompressed WARC stream, watched so that its last record can be judged complete or cut off.

gzip tells by its own trailer that a member is whole; a plain file tells it only by the blank lines
after its last record.
"""

import re

from news_platform.ccnews.gzip_members import PushbackReader

# More than a reader's buffer and the longest header it accepts, so a record's header is inside.
_WINDOW_BYTES = 192 << 10
_RECORD_MAGIC = b"WARC/"
_BLANK_LINE = re.compile(rb"\r*\n\r*\n")


class PlainStream:
    """A readable stream that remembers the header of the record in hand and how it all ended."""

    def __init__(self, source: PushbackReader) -> None:
        self._source = source
        self._window = b""
        self._end = 0
        self._header_end: int | None = None
        self._blank_line = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes of the stream, none at its end."""
        data = bytes(self._source.take())
        if 0 <= size < len(data):
            self._source.give_back(data[size:])
            data = data[:size]
        self._end += len(data)
        self._window = (self._window + data)[-_WINDOW_BYTES:]
        return data

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._end

    def mark(self, start: int) -> None:
        """Remember the record whose header, already read, starts at this byte."""
        found = _BLANK_LINE.search(self._window, start - (self._end - len(self._window)))
        self._header_end = None
        if found:
            self._header_end = self._end - len(self._window) + found.end()
            self._blank_line = found.group()

    def is_complete(self, content_length: int) -> bool:
        """Say, at the end of the stream, whether the marked record is there to its end."""
        if self._header_end is None:
            return False
        rest = self._end - (self._header_end + content_length)
        if rest < 0:
            return False
        after = self._window[max(0, len(self._window) - rest) :].strip(b"\r\n")
        if after:  # a length stated too short leaves text behind; only a started record is a cut
            return not _RECORD_MAGIC.startswith(after[: len(_RECORD_MAGIC)])
        # Some writers end an empty record, from which nothing can be missing, by one line only.
        return content_length == 0 or rest >= len(self._blank_line)
