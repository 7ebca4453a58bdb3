"""Build what is published: sdist, wheel, docs, a CycloneDX bill of materials and checksums.

`make release` writes them to dist/ after all checks. Nothing is uploaded.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
DIST = PROJECT / "dist"
_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_TOOL = {"type": "application", "name": "news-platform-release"}


@dataclass(frozen=True, slots=True)
class Pin:
    """One locked package with the hashes of its files."""

    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Return its package URL."""
        name = re.sub(r"[-_.]+", "-", self.name).lower()
        return f"pkg:pypi/{name}@{self.version}"


def read_pins(lock: Path) -> Iterator[Pin]:
    """Yield the packages of a lock file."""
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock.read_text(encoding="utf-8").strip()):
        if found := _PIN.match(entry):
            yield Pin(found["name"], found["version"], tuple(_HASH.findall(entry)))


def licence_of(name: str) -> str | None:
    """Return what an installed package says about its licence; None if it is not installed."""
    try:
        about = metadata(name)
    except PackageNotFoundError:  # of another system or Python
        return None
    if "License-Expression" in about:
        return str(about["License-Expression"])
    named = [text for text in about.get_all("Classifier", ()) if text.startswith("License ::")]
    classes = [text.rpartition(" :: ")[2] for text in named]
    # Some packages have the whole text of the licence in this field: its first line names it.
    stated = about["License"].strip().split("\n")[0] if "License" in about else ""
    return " AND ".join(classes) or stated or "unknown"


def bill_of_materials(lock: Path, *, name: str, version: str) -> Mapping[str, Any]:
    """Return the locked packages as a CycloneDX 1.6 document; the same lock gives the same one."""
    root = f"pkg:pypi/{name}@{version}"
    components = [_component(pin) for pin in read_pins(lock)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [_TOOL]},
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": name,
                "version": version,
                "purl": root,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
        "dependencies": [{"ref": root, "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _component(pin: Pin) -> Mapping[str, Any]:
    licence = licence_of(pin.name)
    return {
        "type": "library",
        "bom-ref": pin.purl,
        "name": pin.name,
        "version": pin.version,
        "purl": pin.purl,
        **({"licenses": [{"license": {"name": licence}}]} if licence else {}),
        # One for each file of the version, such as the wheels of several systems.
        "hashes": [{"alg": "SHA-256", "content": one} for one in pin.hashes],
    }


def main() -> None:
    """Build everything anew, and write what it is made of."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = str(project["name"]), str(project["version"])
    shutil.rmtree(DIST, ignore_errors=True)
    # The build backend is the locked one: an isolated build would fetch another.
    build = ["-m", "build", "--no-isolation", "--outdir", str(DIST), str(PROJECT)]
    subprocess.run([sys.executable, *build], check=True, stdout=subprocess.DEVNULL)
    shutil.make_archive(str(DIST / f"{name}-{version}-docs"), "gztar", PROJECT / "build" / "site")
    bill = bill_of_materials(PROJECT / "deploy" / "requirements.lock", name=name, version=version)
    text = json.dumps(bill, indent=1)
    (DIST / f"{name}-{version}.cdx.json").write_text(text, encoding="utf-8")
    files = sorted(path for path in DIST.iterdir() if path.is_file())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    (DIST / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="utf-8")
    print("\n".join(str(path.relative_to(PROJECT)) for path in files))  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
