"""Pure: write the gzip members of a domain's run again without some of its records."""

import io
from collections.abc import Iterator, Sequence
from itertools import compress, islice

from isal import isal_zlib
from isal.igzip_lib import IsalError

from news_platform.domain_store.gzip_members import GZIP, MemberWriter
from news_platform.errors import StorageError


def rewrite_run(raw: bytes, kept: Sequence[bool]) -> bytes:
    """Leave records out of a run; members in which nothing changes are copied as they are.

    `kept` says for each record, in the order of the run, whether it stays.
    """
    out: list[bytes] = []
    flags = iter(kept)
    for members, content in _iter_groups(raw):
        lines = content.split(b"\n")[:-1]
        stays = list(islice(flags, len(lines)))
        if all(stays):
            out.append(members)
        elif any(stays):
            out.append(_encoded(list(compress(lines, stays))))
    return b"".join(out)


def _encoded(lines: list[bytes]) -> bytes:
    sink = io.BytesIO()
    writer = MemberWriter(sink)
    writer.add("", lines)
    writer.end_domain()
    return sink.getvalue()


def _iter_groups(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield members with their content; those that share a record larger than a member together."""
    start, pieces = 0, []
    for end, content in _iter_members(raw):
        pieces.append(content)
        if content.endswith(b"\n"):
            yield raw[start:end], b"".join(pieces)
            start, pieces = end, []
    if pieces:
        raise StorageError("the last record has no line end: it is truncated")


def _iter_members(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the end of each gzip member and its content."""
    rest = raw
    while rest:
        member = isal_zlib.decompressobj(GZIP)
        try:
            content = member.decompress(rest)
        except IsalError as error:  # type: ignore[misc] # its stub names no class
            raise StorageError(f"cannot inflate a gzip member: {error}") from error
        if not member.eof:
            raise StorageError("cannot inflate a gzip member: it is truncated")
        rest = member.unused_data
        yield len(raw) - len(rest), content
