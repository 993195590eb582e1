"""The vendored files of the pages are bundled from the locked packages."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "static" / "vendor"
LOCK = ROOT / "requirements" / "browser" / "package-lock.json"


def test_vendored_files_have_the_checksums_that_were_noted() -> None:
    noted = {}
    for line in (VENDOR / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        noted[name.removeprefix("./")] = digest
    found = {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS" and not path.name.endswith(".d.ts")
    }
    assert found == noted


def test_packages_are_locked_by_digest_and_name_no_host() -> None:
    packages = json.loads(LOCK.read_text())["packages"]
    installed = {name: package for name, package in packages.items() if name}
    assert installed
    assert [name for name, package in installed.items() if "integrity" not in package] == []
    assert "://" not in "".join(str(package.get("resolved", "")) for package in packages.values())
