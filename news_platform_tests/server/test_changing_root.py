"""The server while its data changes: days replaced, indexes deleted, takedowns, and query bombs."""

import random
import shutil
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from news_platform.corpus.pipeline import crawl_dataset
from news_platform.rss.ledger.article_store import revision_delta
from news_platform.rss.ledger.tables import REVISIONS
from news_platform.search.pipeline import build_day
from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform.web.urls import url_hash
from news_platform_tests.corpus.articles import article, store_articles
from news_platform_tests.rss.ledger_rows import NOW, add_article
from news_platform_tests.server.conftest import DAY, write_root
from news_platform_tests.server.explorer import Explorer, exploring
from news_platform_tests.takedowns.asked import ask

# Of the processor: the tests' neighbours may keep a reply waiting for as long as they like.
MOST_SECONDS = 2
DAMAGES = 12
PLAIN = f"/articles/{url_hash('https://a.example/plain')}"
PATHS = ("/", "/?q=bridge", PLAIN, f"/api/v1{PLAIN}", "/api/v1/search?q=bridge", "/domains")


def test_a_server_under_load_never_fails_while_days_are_replaced(tmp_path: Path) -> None:
    store = write_root(tmp_path / "root", tmp_path)
    statuses: Counter[int] = Counter()
    is_over = threading.Event()
    cache = {"NEWS_PLATFORM_SEARCH_CACHE": str(tmp_path / "cache")}
    with exploring(tmp_path / "root", **cache) as running:

        def load() -> None:
            while not is_over.is_set():
                for path in PATHS:
                    statuses[running.get(path).status] += 1

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(4):
            text = f"The bridge of build {number} is open. " * 20
            rows = [article("https://a.example/plain", text, title=f"Bridge {number}")]
            store_articles(store, DAY, rows, tmp_path)
            build_day(store, DAY, now=datetime.now(UTC), keep_old=False)
            # Readers of the version before lose their files at once.
            crawl_dataset(store).vacuum(timedelta(0))
            time.sleep(0.2)
        is_over.set()
        for thread in threads:
            thread.join()
        _wait_for(running, "Bridge 3")
    assert set(statuses) == {200}, statuses
    assert statuses[200] > 50


def _wait_for(running: Explorer, text: str) -> None:
    """Wait until the newest version is shown: the server looks at most every few seconds."""
    deadline = time.monotonic() + 30
    while text not in running.get(PLAIN).text:
        assert time.monotonic() < deadline, f"{text} was never shown"
        time.sleep(0.1)


def test_an_index_deleted_under_the_server_is_told_and_comes_back(tmp_path: Path) -> None:
    store = write_root(tmp_path / "root", tmp_path)
    cache = {"NEWS_PLATFORM_SEARCH_CACHE": str(tmp_path / "cache")}
    with exploring(tmp_path / "root", **cache) as running:
        assert running.get("/api/v1/search?q=bridge").json["count"] == 2
        shutil.rmtree(tmp_path / "root" / "search")
        for place in range(5):
            assert running.get(f"/api/v1/search?q=bridge+OR+x{place}").status < 500
            assert running.get(f"/?q=bridge+OR+y{place}").status < 500
            assert running.get(PLAIN).status == 200
        shutil.rmtree(tmp_path / "root" / "markers" / "search_index")
        time.sleep(1.1)
        gone = running.get("/?q=bridge")
        assert gone.status == 400 and "there is no search index" in gone.text
        build_day(store, DAY, now=datetime.now(UTC))
        time.sleep(1.1)
        assert running.get("/api/v1/search?q=bridge").json["count"] == 2


def test_a_takedown_is_obeyed_before_anything_is_removed(tmp_path: Path) -> None:
    write_root(tmp_path / "root", tmp_path)
    cache = {"NEWS_PLATFORM_SEARCH_CACHE": str(tmp_path / "cache")}
    with exploring(tmp_path / "root", **cache) as running:
        assert running.get(PLAIN).status == 200
        ask(open_store(str(tmp_path / "root")), "url", "https://a.example/plain")
        time.sleep(1.1)
        assert running.get(PLAIN).status == 410
        hits = running.get("/api/v1/search?q=bridge").json["hits"]
        assert [hit["url"] for hit in hits] == ["https://b.example/copy"]


def test_the_edits_page_shows_changed_headlines_word_by_word(tmp_path: Path) -> None:
    write_root(tmp_path / "root", tmp_path)
    engine = open_engine(f"sqlite:///{tmp_path}/root/ledger.sqlite")
    migrate(engine)
    row_id = add_article(engine, title="Mayor denies all")
    versions = [("Mayor denies", "-- one"), ("Mayor admits", "-- one"), ("Mayor admits", "-- two")]
    versions.append(("Mayor denies all", "-- three"))
    with engine.begin() as connection:
        for number, (old, new) in enumerate(pairwise(versions), start=1):
            values = {"row_id": row_id, "rev_n": number, "delta": revision_delta(old, new)}
            values |= {"revised_at": NOW + timedelta(hours=number)}
            hashes = {"old_text_hash": old[1], "new_text_hash": new[1]}
            connection.execute(sa.insert(REVISIONS).values(**values, **hashes))
    engine.dispose()
    with exploring(tmp_path / "root") as running:
        found, page = running.get("/api/v1/edits").json, running.get("/edits").text
    both, text, headline = found["edits"]
    changed = [["same", "Mayor "], ["removed", "denies"], ["added", "admits"]]
    assert (headline["headline"], headline["parts"]) == (changed, [])
    changed = [["same", "-- "], ["removed", "one"], ["added", "two"]]
    assert (text["headline"], text["parts"]) == ([], changed)
    changed = [["removed", "admits"], ["added", "denies all"]]
    assert both["headline"][1:] == changed and both["parts"][1][0] == "removed"
    assert [one["revision"] for one in found["most_edited"]] == [3]
    assert "headline only" in page and "headline and text" in page
    assert "<del>denies</del> <ins>admits</ins>" in page


@pytest.mark.parametrize(
    "query",
    [
        " OR ".join(f"word{number}" for number in range(10_000)),
        " ".join(["bridge"] * 101),
        "(" * 100 + "bridge" + ")" * 100,
        "*" * 1_500,
        '"' * 1_501,
        "NOT " * 400,
    ],
    ids=range(6),
)
def test_a_query_bomb_is_refused_within_two_seconds(small: Explorer, query: str) -> None:
    for path in ("/api/v1/search?q=", "/?q="):
        # The server is a thread of this process.
        before = time.process_time()
        reply = small.get(path + quote(query, safe=""))
        spent = time.process_time() - before
        assert 400 <= reply.status < 500, reply.text[:300]
        assert spent < MOST_SECONDS


def _damaged(root: Path, chance: random.Random) -> None:
    """Change some bytes of one file of the index, in a copy that nobody else links to."""
    files = [path for path in (root / "search").rglob("*") if path.is_file()]
    path = chance.choice(files)
    body = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 8, 64))):
        body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    path.unlink()
    path.write_bytes(body)


def test_a_damaged_index_is_told_with_its_cure_and_ends_nothing(
    small_root: Path, tmp_path: Path
) -> None:
    statuses: Counter[int] = Counter()
    for seed in range(DAMAGES):
        root = tmp_path / str(seed)
        shutil.copytree(small_root, root)
        _damaged(root, random.Random(seed))
        cache = {"NEWS_PLATFORM_SEARCH_CACHE": str(tmp_path / f"cache{seed}")}
        with exploring(root, **cache) as running:
            for query in ("bridge", "hostileword", "%22old+bridge%22&sort=date"):
                reply = running.get(f"/api/v1/search?q={query}&limit=50")
                statuses[reply.status] += 1
                if reply.status != 200:
                    message = reply.json["error"]["message"]
                    assert "search --build" in message and str(tmp_path) not in message, message
            assert running.get("/domains").status == 200
        shutil.rmtree(root)
    assert statuses.keys() == {200, 503}, statuses
