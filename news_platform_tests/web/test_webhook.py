"""Posts to receivers that misbehave in every way of HTTP, and the signature of a message."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from news_platform.errors import FetchError
from news_platform.web.webhook import SIGNATURE_HEADER, PostRejected, post_json
from news_platform_tests.servers.webhook import SECRET, Webhook, serve_webhook

ANSWERS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "answer"),
    "no HTTP": (b"\x00\xff garbage\r\n\r\n", "answer"),
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n", "answer"),
    "a status of letters": (b"HTTP/1.1 abc OK\r\n\r\n", "answer"),
    "a broken length": (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "answer"),
    "a cut body": (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", "answer"),
    "a broken chunk": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "answer",
    ),
    "a false encoding": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        "answer",
    ),
    "a huge header": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", "answer"),
    "refused": (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "status"),
    "away": (b"HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n", "status"),
    "nowhere": (b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", "redirect"),
}


@contextmanager
def receiving(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve one answer to each connection; what a receiver sends need not be HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        connection.recv(65_536)
                        answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/{SECRET}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("name", ANSWERS)
def test_every_wrong_answer_is_a_counted_reason_without_the_address(name: str) -> None:
    body, reason = ANSWERS[name]
    with receiving(lambda it: it.sendall(body)) as url, pytest.raises(FetchError) as raised:
        post_json(url, {"text": "x"})
    assert raised.value.reason == reason
    assert SECRET not in str(raised.value)


def test_a_receiver_that_sends_byte_by_byte_is_left_after_the_timeout() -> None:
    def drip(connection: socket.socket) -> None:
        for byte in b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 100:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    started = time.monotonic()
    with receiving(drip) as url, pytest.raises(FetchError, match="TimeoutError"):
        post_json(url, {}, timeout_seconds=0.3)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_its_target_hears_nothing(status: int) -> None:
    with serve_webhook(Webhook()) as other:
        location = f"HTTP/1.1 {status} Go\r\nLocation: {other.url}\r\nContent-Length: 0\r\n\r\n"
        with (
            receiving(lambda it: it.sendall(location.encode())) as url,
            pytest.raises(PostRejected, match="redirects are not followed"),
        ):
            post_json(url, {"text": "x"}, headers={"Authorization": "Bearer key"})
    assert other.bodies == []


@pytest.mark.parametrize("url", ["http://", "http://[", "http://\ud800.example", "http://a b/"])
def test_an_address_that_cannot_be_called_is_rejected_without_being_named(url: str) -> None:
    with pytest.raises(FetchError) as raised:
        post_json(url, {})
    assert url not in str(raised.value)


def test_the_documented_receiver_accepts_our_signature_and_no_other() -> None:
    page = Path(__file__).parents[2].joinpath("docs/exports.md").read_text(encoding="utf-8")
    [snippet] = [part for part in page.split("```python\n")[1:] if "is_genuine" in part]
    names: dict[str, Callable[[str, bytes, str], bool]] = {}
    exec(snippet.partition("```")[0], names)
    is_genuine = names["is_genuine"]
    with serve_webhook(Webhook()) as webhook:
        post_json(webhook.url, {"text": "Fluß"}, secret=SECRET)
        post_json(webhook.url, {"text": "unsigned"})
    header, body = webhook.headers[0][SIGNATURE_HEADER], webhook.raw[0]
    assert is_genuine(header, body, SECRET)
    assert not is_genuine(header, body, "another key")
    assert not is_genuine(header, body + b" ", SECRET)
    assert not is_genuine("", body, SECRET)
    sent_at = int(header.removeprefix("t=").partition(",")[0])
    older = header.replace(str(sent_at), str(sent_at - 1))
    assert not is_genuine(older, body, SECRET)
    assert SIGNATURE_HEADER not in webhook.headers[1]
