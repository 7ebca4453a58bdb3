"""Write the outputs that pages show: `python docs/examples.py DEMO_ROOT`.

README.md, quick_start.md and worked_example.md show commands in `console` blocks and Python after
`>>>`. Both run on a copy of a finished demo, in the order of the page; a test compares the result
with the page, so no output can become outdated.
"""

import contextlib
import doctest
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

DOCS = Path(__file__).parent
PAGES = (DOCS.parent / "README.md", DOCS / "quick_start.md", DOCS / "worked_example.md")
CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
# Each command ends with this character, which no output contains.
_END = "\x1e"


def main(root: str) -> None:
    """Run every page on copies of this demo root, and write the outputs into the pages."""
    for page in PAGES:
        page.write_text(answered_page(page, Path(root)), encoding="utf-8")


def answered_page(page: Path, demo: Path) -> str:
    """Return the text of a page with the outputs that its commands and statements have now."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(demo, Path(folder, "data-demo"))
        with contextlib.chdir(folder):
            return "".join(_answered_python(_answered_console(text)))


def _answered_console(text: str) -> str:
    blocks = [_commands(block) for block in CONSOLE.findall(text)]
    outputs = iter(_run([command for block in blocks for command in block]))
    filled = iter("".join(f"$ {command}\n{next(outputs)}" for command in block) for block in blocks)
    return CONSOLE.sub(lambda _: next(filled), text)


def _commands(block: str) -> list[str]:
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def _run(commands: list[str]) -> list[str]:
    """Run commands in one shell, so that variables stay set; return what each printed."""
    script = "".join(f"{command}\nprintf '{_END}'\n" for command in commands)
    ran = subprocess.run(
        ["bash", "-c", script], env=_environ(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    outputs = ran.stdout.decode().split(_END)[:-1]
    return [f"{output.rstrip()}\n" if output.strip() else "" for output in outputs]


def _environ() -> Mapping[str, str]:
    """Return the environment of a new user, with the commands of this installation."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NEWS_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return kept | {"PATH": path, "COLUMNS": "100", "NEWS_PLATFORM_SAMPLE": "1"}


def _answered_python(text: str) -> Iterator[str]:
    names: dict[str, object] = {"ROOT": "data-demo"}
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
        exec(compile(source, "<page>", "single"), names)  # the input is our own page
    return printed.getvalue()


def page_format() -> pl.Config:
    """Return the Polars options with which the pages print tables."""
    return pl.Config(tbl_rows=20, fmt_str_lengths=60, tbl_width_chars=100, tbl_cols=8)


def _indented(text: str, width: int) -> str:
    return "".join(" " * width + line + "\n" for line in text.splitlines())


if __name__ == "__main__":
    main(sys.argv[1])
