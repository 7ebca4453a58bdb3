"""Write the outputs into docs/worked_example.md: `python docs/worked_example.py data-demo`.

The page is a doctest over a finished demo; a test runs it, so no output can become outdated.
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
    """Run every statement of the page on this demo root and replace its output."""
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
    """Run one statement as a Python prompt does and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), page_format():
        exec(compile(source, str(PAGE), "single"), names)  # the input is our own page
    return printed.getvalue()


def page_format() -> pl.Config:
    """Return the Polars options with which the page prints tables."""
    return pl.Config(tbl_rows=20, fmt_str_lengths=60, tbl_width_chars=100, tbl_cols=8)


def _indented(text: str, width: int) -> str:
    return "".join(" " * width + line + "\n" for line in text.splitlines())


if __name__ == "__main__":
    main(sys.argv[1])
