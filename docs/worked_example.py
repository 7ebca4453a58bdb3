"""Write the answers into docs/worked_example.md: `python docs/worked_example.py data-demo`.

The page is a doctest over a finished demo; a test runs it, so no answer can go stale.
"""

import contextlib
import doctest
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

PAGE = Path(__file__).with_suffix(".md")


def main(root: str) -> None:
    """Answer every question of the page anew from this demo root."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text("".join(_answered(text, {"ROOT": root})), encoding="utf-8")


def _answered(text: str, names: dict[str, object]) -> Iterator[str]:
    for piece in doctest.DocTestParser().parse(text):
        if isinstance(piece, str):
            yield piece
            continue
        yield _indented(_as_typed(piece.source), piece.indent)
        yield _indented(
            _answer(piece.source, names).replace("\n\n", "\n<BLANKLINE>\n"), piece.indent
        )


def _as_typed(source: str) -> str:
    first, *more = source.splitlines()
    return "\n".join([f">>> {first}", *(f"... {line}" for line in more)]) + "\n"


def _answer(source: str, names: dict[str, object]) -> str:
    """Run one statement as a Python prompt does; return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), page_format():
        exec(compile(source, str(PAGE), "single"), names)  # our own page, at our own desk
    return printed.getvalue()


def page_format() -> pl.Config:
    """Return how tables are printed on the page."""
    return pl.Config(tbl_rows=20, fmt_str_lengths=60, tbl_width_chars=100, tbl_cols=8)


def _indented(text: str, width: int) -> str:
    return "".join(" " * width + line + "\n" for line in text.splitlines())


if __name__ == "__main__":
    main(sys.argv[1])
