"""Run nginx with the example of deploy/proxy on ports of loopback, and ask through it."""

import base64
import contextlib
import http.client
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from news_platform_tests.servers.dagster_ui import PROJECT, free_port
from news_platform_tests.web.certificates import new_authority

EXAMPLE = PROJECT / "deploy/proxy/nginx.conf"
EXPLORER, DAGSTER = "news.example.org", "dagster.news.example.org"
LOGIN = "Basic " + base64.b64encode(b"reader:the-password").decode()
_MAIN = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running nginx, and the authority that signed its certificate."""

    port: int
    plain_port: int
    trust: ssl.SSLContext

    def get(self, host: str, path: str, *, client: str = "127.0.0.2", **headers: str) -> int:
        """Send a GET over TLS from an address of loopback; return the status."""
        with contextlib.closing(http.client.HTTPConnection(host, self.port)) as connection:
            connection.sock = self.open(host, client=client)
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET", path, headers=named)
            return connection.getresponse().status

    def open(self, host: str, *, client: str = "127.0.0.2") -> ssl.SSLSocket:
        """Return a connection that has checked the certificate."""
        plain = socket.create_connection(("127.0.0.1", self.port), 60, (client, 0))
        return self.trust.wrap_socket(plain, server_hostname=host)

    def get_plain(self, host: str, path: str) -> tuple[int, str]:
        """Send a GET without TLS; return the status and where it leads."""
        connection = http.client.HTTPConnection("127.0.0.1", self.plain_port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Host": host})
            answer = connection.getresponse()
            return answer.status, answer.getheader("Location", "")


@contextlib.contextmanager
def running_nginx(folder: Path, *, dagster_port: int, explorer_port: int) -> Iterator[Proxy]:
    """Run the example with other ports and files until the block ends; skip without nginx."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("the proxy example is not tested: nginx is not installed (apt install nginx)")
    authority = new_authority()
    authority.serving(EXPLORER, folder, also=(DAGSTER,))
    port, plain_port = free_port(), free_port()
    changes = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "listen 80;": f"listen 127.0.0.1:{plain_port};",
        "127.0.0.1:3000": f"127.0.0.1:{dagster_port}",
        "127.0.0.1:8000": f"127.0.0.1:{explorer_port}",
        "/etc/nginx/news-platform.pem": str(folder / f"{EXPLORER}.pem"),
        "/etc/nginx/news-platform.htpasswd": str(folder / "htpasswd"),
    }
    site = EXAMPLE.read_text()
    for ours, theirs in changes.items():
        assert ours in site, ours
        site = site.replace(ours, theirs)
    (folder / "site.conf").write_text(site)
    (folder / "htpasswd").write_text("reader:{PLAIN}the-password\n")
    (folder / "main.conf").write_text(_MAIN.format(folder=folder))
    process = subprocess.Popen([nginx, "-p", str(folder), "-c", str(folder / "main.conf")])
    try:
        _wait_until_listening(process, port, folder / "nginx.log")
        yield Proxy(port, plain_port, authority.trusting())
    finally:
        process.terminate()
        process.wait(20)


def _wait_until_listening(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
