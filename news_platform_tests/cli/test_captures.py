"""`news-platform captures` and `ccnews index` on a small crawl."""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from news_platform.cli.main import main
from news_platform_tests.ccnews.archive import Record, article, http
from news_platform_tests.ccnews.crawl import DAY, mixed_pages, warc_path, write_crawl

URL = "https://www.harbour.example/news/one"
PAGE = article("The bridge is open.")


class Shell:
    """Commands over one root and one crawl."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        records = [*mixed_pages(2), Record(http(PAGE), uri=URL)]
        write_crawl(folder / "crawl", {warc_path(DAY): records})

    def run(self, *words: str) -> Result:
        env = {"NEWS_PLATFORM_CRAWL_URL": str(self.folder / "crawl")}
        return CliRunner().invoke(main, [*words, "--root", str(self.folder / "root")], env=env)

    def output(self, *words: str) -> str:
        done = self.run(*words)
        assert done.exit_code == 0, done.exception
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    assert "3 captures" in shell.output("ccnews", "index", "--days", str(DAY))
    return shell


def test_from_the_index_alone_to_the_page(shell: Shell) -> None:
    assert "1 already collected" in shell.output("ccnews", "index", "--days", str(DAY))
    # Before the day is merged, it is looked up in its runs.
    assert URL in shell.output("captures", "list", "*.harbour.example")
    assert json.loads(shell.output("captures", "build", "--json")) == {
        "built": [{"day": str(DAY), "captures": 3}]
    }
    assert "up to date" in shell.output("captures", "build")
    (row,) = json.loads(shell.output("captures", "list", URL, "--json"))
    assert (row["url"], row["fetch_status"], row["content_languages"]) == (URL, 200, None)
    assert shell.output("captures", "get", URL) == PAGE
    assert shell.output("captures", "get", URL, "--headers").startswith("HTTP/1.1 200 OK")
    found = json.loads(shell.output("captures", "get", URL, "--at", "2025-11-01", "--json"))
    assert (found["page"], found["is_verified"]) == (PAGE, True)
    (line,) = shell.output("store", "get", "harbour.example").splitlines()
    assert json.loads(line)["tree"] == PAGE


def test_what_is_not_known_or_wrong_is_said_in_one_line(shell: Shell) -> None:
    assert "no capture is known" in shell.output("captures", "list", "nowhere.example")
    missing = shell.run("captures", "get", "https://nowhere.example/")
    assert missing.exit_code == 1 and "no capture of" in str(missing.exception)
    assert shell.run("captures", "get", URL, "--at", "yesterday").exit_code == 2
    assert shell.run("captures", "list", URL, "--match", "regex").exit_code == 2
    early = shell.run("captures", "export", "--cdxj", str(shell.folder / "cdx"))
    assert early.exit_code == 1 and "captures build" in str(early.exception)


def test_exports_for_other_tools(shell: Shell) -> None:
    shell.output("captures", "build")
    target, folder = shell.folder / "x.wacz", shell.folder / "cdx"
    done = json.loads(
        shell.output(
            "captures", "wacz", "--domain", "harbour.example", "--to", str(target), "--json"
        )
    )
    assert (done["records"], done["pages"]) == (1, 1) and target.exists()
    report = json.loads(shell.output("captures", "export", "--cdxj", str(folder), "--json"))
    assert report["captures"] == 3
    assert URL in gzip.decompress((folder / "cdx-00000.gz").read_bytes()).decode()
