"""Podman with state of its own in one folder, and stand-ins for the base images.

The images of a registry cannot be pulled everywhere. A Debian made by mmdebstrap takes their names,
so that Dockerfile and docker-compose.yaml are used as they are.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from news_platform.errors import NewsPlatformError

TOOLS = ("podman", "runc", "mmdebstrap", "unshare")
PACKAGES = (
    "binutils", "ca-certificates", "libgomp1", "postgresql", "python3", "python3-venv",
    "redis-server",
)  # fmt: skip
_DEBIAN = "localhost/debian-stand-in:bookworm"
PYTHON, POSTGRES, REDIS = "python:3.11-slim", "postgres:18", "redis:7"
_CONTAINERS_CONF = """[containers]
default_ulimits = ["nofile=20000:20000", "nproc=30000:30000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""
_STORAGE_CONF = """[storage]
driver = "{driver}"
graphroot = "{folder}/storage"
runroot = "{folder}/run"
"""
POSTGRES_ENTRY = Path(__file__).parent / "postgres_entry.sh"


def missing_tools() -> list[str]:
    """Return what the demo needs and this machine lacks."""
    lacking = [name for name in TOOLS if shutil.which(name) is None]
    return [*lacking, *([] if os.geteuid() == 0 else ["root"])]


@dataclass(frozen=True)
class Podman:
    """One installation of podman: its images, containers and settings."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> "Podman":
        """Write the configuration; what was built before is kept."""
        folder.mkdir(parents=True, exist_ok=True)
        driver = "overlay" if shutil.which("fuse-overlayfs") or os.geteuid() == 0 else "vfs"
        (folder / "containers.conf").write_text(_CONTAINERS_CONF)
        (folder / "storage.conf").write_text(_STORAGE_CONF.format(driver=driver, folder=folder))
        return cls(folder)

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment in which every command of podman runs."""
        return {
            **os.environ,
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
        }

    def run(self, *words: str, check: bool = True) -> str:
        """Run a command of podman and return its output; raise with its last line if it fails."""
        done = subprocess.run(
            ["podman", *words], env=self.environ, capture_output=True, text=True, check=False
        )
        if check and done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or [""]
            raise NewsPlatformError(f"podman {words[0]} failed: {last[0]}")
        return done.stdout.strip()

    def has_image(self, name: str) -> bool:
        """Return whether an image exists here."""
        return bool(self.run("images", "--quiet", name))

    def make_stand_ins(self, *, ca_bundle: str | None) -> None:
        """Give a Debian, which is made once, the names of the base images."""
        if not self.has_image(_DEBIAN):
            archive = self.folder / "base.tar"
            _make_debian(archive, ca_bundle=ca_bundle)
            self.run("import", str(archive), _DEBIAN)
            archive.unlink()
        for name in (PYTHON, REDIS):
            self.run("tag", _DEBIAN, f"docker.io/library/{name}")
        recipe = self.folder / "postgres"
        recipe.mkdir(exist_ok=True)
        shutil.copy(POSTGRES_ENTRY, recipe)
        (recipe / "Dockerfile").write_text(
            f"FROM {_DEBIAN}\nCOPY --chmod=755 {POSTGRES_ENTRY.name} /usr/local/bin/\n"
            f'ENTRYPOINT ["/usr/local/bin/{POSTGRES_ENTRY.name}"]\n'
        )
        self.run("build", "--quiet", "--tag", f"docker.io/library/{POSTGRES}", str(recipe))


def _make_debian(archive: Path, *, ca_bundle: str | None) -> None:
    # pip of Debian refuses to install beside its packages; that of the official image does not.
    hooks = [
        'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
        'mkdir -p "$1"/docker-entrypoint-initdb.d "$1"/data',
        'ln -sf python3 "$1"/usr/bin/python',
    ]
    if ca_bundle:
        hooks.append(f'cat {ca_bundle} > "$1"/etc/ssl/certs/ca-certificates.crt')
    words = [f"--customize-hook={hook}" for hook in hooks]
    command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", *words]
    done = subprocess.run(
        [*command, "bookworm", str(archive)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NewsPlatformError(f"mmdebstrap failed: {done.stderr.strip()[-300:]}")
