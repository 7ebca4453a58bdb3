"""`news-platform serve` and `mcp` as commands: what they refuse, what they print, how they end."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from news_platform.cli.main import main
from news_platform.errors import ConfigError
from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import open_store
from news_platform_tests.servers.dagster_ui import free_port


@pytest.fixture
def root(tmp_path: Path) -> Path:
    claim_root(open_store(str(tmp_path / "root")), sample=False)
    return tmp_path / "root"


def test_another_address_without_a_token_is_one_clear_line(root: Path) -> None:
    words = ["serve", "--host", "0.0.0.0", "--root", str(root)]
    with pytest.raises(ConfigError, match="set NEWS_PLATFORM_SERVER_TOKEN, or use"):
        main(words, standalone_mode=False)


def test_a_taken_port_is_one_clear_line(root: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 is in use"):
            main(["serve", "--port", port, "--root", str(root)], standalone_mode=False)


def test_mcp_over_http_needs_a_token_beyond_loopback(root: Path) -> None:
    words = ["mcp", "--host", "0.0.0.0", "--port", "8001", "--root", str(root)]
    with pytest.raises(ConfigError, match="without a token"):
        main(words, standalone_mode=False)


def test_the_server_of_an_empty_root_ends_when_its_starter_does(root: Path) -> None:
    port = free_port()
    reading, writing = os.pipe()
    words = ["serve", "--port", str(port), "--root", str(root), "--shutdown-pipe", str(reading)]
    process = subprocess.Popen(
        [sys.executable, "-m", "news_platform.cli", *words],
        pass_fds=[reading],
        stderr=subprocess.PIPE,
    )
    os.close(reading)
    try:
        assert process.stderr is not None
        assert process.stderr.readline().decode() == f"http://127.0.0.1:{port} over {root}\n"
        _wait_for(f"http://127.0.0.1:{port}/")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            assert b"# TYPE news_platform_" in answer.read()
        os.close(writing)  # as if the process that started it had died
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                assert b"There are no articles yet" in answer.read()
                return
        except urllib.error.URLError:
            time.sleep(0.1)
    pytest.fail("the server did not answer")
