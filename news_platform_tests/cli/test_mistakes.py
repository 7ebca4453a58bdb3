"""Mistakes that people make, over all commands: each ends with a line that helps."""

import shlex
from pathlib import Path

import pytest

from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import open_store
from news_platform_tests.cli.runner import invoke
from news_platform_tests.servers.demo import Demo

# By command line: what the last line says. `{root}` is a root with the demo's data.
SPELLING = {
    "sttaus": "did you mean 'status'?",
    "stroe build": "did you mean 'store'?",
    "frobnicate": "expected one of adopt, captures, ccnews",
    "store bild": "Did you mean 'build'?",
    "retention aply": "Did you mean 'apply'?",
    "takedown lst": "'list'",
    "demo --rot x": "Did you mean '--root'?",
    "doctor --jsn": "Did you mean '--json'?",
    "mcp --prot 1": "'--port'",
    "status --al": "--all",
    "search bridge --langauge en": "--language",
}
MISSING = {
    "sql": "Missing argument 'QUERY'",
    "search": "expected a QUERY, or --build",
    "explain": "Missing argument 'URL|DOMAIN|FEED'",
    "store get": "Missing argument 'DOMAIN'",
    "domains show": "Missing argument 'DOMAIN'",
    "domains import": "Missing argument 'FILES...'",
    "ccnews list": "Missing option '--month'",
    "corpus export": "Missing option '--output'",
    "ledger backup": "Missing argument 'FILE'",
    "records segment": "Missing argument 'SNAPSHOTS...'",
    "takedown add": "Missing option '--reason'",
    "store build --batch x": "--batch and --rows must be used together",
    "ledger move --root {root}": "give --to, or set NEWS_PLATFORM_LEDGER_TARGET_URL",
    "sql 'select 1' --format parquet": "--format parquet needs --output FILE",
    "sql 'select 1' --output answer.xls": "cannot tell the format of 'answer.xls': give --format",
}
VALUES = {
    "store get a.org --limit -1": "-1 is not in the range of numbers from 0 on.",
    "store get a.org --since yesterday": "invalid day 'yesterday': expected YYYY-MM-DD",
    "store verify --bucket 99999 --root {root}": "invalid bucket 99999: expected 0 to 63",
    "store build --batch 2025-11-01 --rows x --root {root}": "it is a day of CC-NEWS, use another",
    "store build --batch x --rows 'no/*.parquet' --root {root}": "no file matches 'no/*.parquet'",
    "sql 'select 1' --format xlsx": "is not one of 'csv', 'json', 'parquet'",
    "sql 'select 1' --output nowhere/a.csv": "there is no folder 'nowhere': create it first",
    "search bridge --from 2025-13-01": "invalid day '2025-13-01': expected YYYY-MM-DD",
    "search bridge --sort newest": "'newest' is not one of 'score', 'date'",
    "search bridge --limit 0": "0 is not in the range of numbers from 1 on.",
    "search '(bridge' --root {root}": "at character 1, '(bridge': this bracket is not closed",
    "ccnews collect --days 2025-11-31": "invalid day '2025-11-31': expected YYYY-MM-DD",
    "ccnews collect --days 2025-11-07..2025-11-01": "it ends before it starts",
    "ccnews collect --redo everything": "is not one of 'missing', 'outdated', 'all'",
    "corpus build --day today": "invalid day 'today': expected YYYY-MM-DD",
    "corpus export --output x --category sport": "is not one of 'other', 'politics', 'sports'",
    "domains policy a.org --purpose train --root {root}": "expected one of index, search, ai_input",
    "domains import no.csv --country de --category m --date x": "File 'no.csv' does not exist",
    "feeds import nothing.opml": "File 'nothing.opml' does not exist",
    "ledger check nothing.zip": "File 'nothing.zip' does not exist",
    "ledger restore nothing.zip": "File 'nothing.zip' does not exist",
    "records segment nothing.html --institution x": "File 'nothing.html' does not exist",
    "rss export --since lastweek": "expected ISO 8601, such as 2025-11-01",
    "rss export --format xml": "is not one of 'csv', 'jsonl'",
    "metrics --port 0": "0 is not in the range 1<=x<=65535",
}
NAMES = {
    "sql 'select * from artcles' --root {root}": "did you mean 'articles'?",
    "sql 'select domian from domain_catalog' --root {root}": 'Candidate bindings: "domain"',
    "sql 'select * from \"secret.csv\"' --root {root}": "only a query run with --unsafe",
    "sql select --root {root}": "SELECT clause without selection list",
    "store get meridian.exampel --root {root}": "did you mean 'meridian.example'?",
    "search bridge --language english --root {root}": "expected one of en",
    "search bridge --domain meridian.exampel --root {root}": "did you mean 'meridian.example'?",
    "stories --language english --root {root}": "no story of language 'english': expected one of",
    "feeds list --group Nope --root {root}": "there is no group 'Nope': there are none yet",
    "feeds list --status activ --root {root}": "is not one of 'active', 'dead'",
    "corpus export --output x --language english --root {root}": "there are: ar, de, el, en",
    "retry raw_new --root {root}": "did you mean 'raw_news'?",
    "retry domain_store 0000-0015 --root {root}": "does not differ from its inputs",
    "explain nothing-known --root {root}": "expected an address such as https://example.org/page",
    "feeds show nothing --root {root}": "`feeds list` shows all, `feeds add` adds one",
    "feeds why nothing --root {root}": "`feeds list` shows all, `feeds add` adds one",
    "domains history nowhere.example --root {root}": "add it with `domains import`",
    "takedown show nothing --root {root}": "`news-platform takedown list` shows all",
    "takedown withdraw nothing --root {root}": "`news-platform takedown list` shows all",
}
MISTAKES = {**SPELLING, **MISSING, **VALUES, **NAMES}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_answered_by_a_line_that_helps(
    line: str,
    finished_demo: Demo,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in finished_demo.environ.items():
        monkeypatch.setenv(name, value)
    code, error, _ = invoke(capsys, *shlex.split(line.format(root=finished_demo.root)))
    *_, last = error.strip().splitlines()
    assert MISTAKES[line] in last and "Traceback" not in error
    # An empty list is an answer; the line names the values that have some.
    assert code in ((0,) if last.startswith("no ") else (1, 2))


def test_there_are_sixty_of_them() -> None:
    assert len(MISTAKES) >= 60


def test_the_demo_beside_a_root_without_data_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEWS_PLATFORM_ROOT", raising=False)
    code, error, _ = invoke(capsys, "sql", "select 1")
    assert code == 2 and "`news-platform demo` makes one to try" in error
    claim_root(open_store(str(tmp_path / "data-demo")), sample=True)
    code, error, _ = invoke(capsys, "sql", "select 1")
    assert code == 2 and error.strip().endswith("add `--root data-demo`")
    assert not (tmp_path / "data").exists()
