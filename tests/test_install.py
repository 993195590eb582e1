"""`requirements/install` installs what a lock pins, with uv and with Python's own pip."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import ZipFile

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parent.parent
SCRIPT: Final = ROOT / "requirements" / "install"
LIMIT_SECONDS: Final = 240

pytestmark = pytest.mark.any_database


def make_wheel(folder: Path, name: str, version: str, requires: Sequence[str] = ()) -> str:
    """Write a wheel of an empty module; return its SHA-256."""
    info = f"{name}-{version}.dist-info"
    metadata = [
        *("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"),
        *("Provides-Extra: toml", *(f"Requires-Dist: {line}" for line in requires)),
    ]
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    records = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
        archive.writestr(f"{info}/RECORD", "\n".join([*records, f"{info}/RECORD,,"]) + "\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an environment with the pip shipped with Python."""
    home = tmp_path_factory.mktemp("environment")
    subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-m", "venv", str(home)], check=True, timeout=LIMIT_SECONDS
    )
    return home / "bin" / "python"


@pytest.mark.long
@pytest.mark.sampled(1)
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_lock_is_installed_though_the_index_has_a_newer_release(
    installer: str, python: Path, tmp_path: Path
) -> None:
    # A lock names no extras, and `wants` requires its second package with one.
    wants, required = f"{installer}_wants", f"{installer}_wanted"
    lock = tmp_path / "lock.txt"
    lines = [
        f"{wants}==1.0 --hash=sha256:{make_wheel(tmp_path, wants, '1.0', [f'{required}[toml]'])}",
        f"{required}==1.0 --hash=sha256:{make_wheel(tmp_path, required, '1.0')}",
    ]
    make_wheel(tmp_path, required, "2.0")
    lock.write_text("\n".join(lines) + "\n")
    script = SCRIPT
    if installer == "pip":
        # There is no uv next to the copy.
        script = tmp_path / "root" / "requirements" / "install"
        script.parent.mkdir(parents=True)
        shutil.copy2(SCRIPT, script)
    elif not (ROOT / ".venv" / "bin" / "uv").exists():
        pytest.skip("no uv: make install")

    done = install(script, lock, python, tmp_path)

    assert done.returncode == 0, done.stderr
    assert ("Installing with pip" in done.stderr) == (installer == "pip")
    code = f"import {wants}, {required}; print({wants}.VERSION, {required}.VERSION)"
    printed = subprocess.run(  # noqa: S603 our own interpreter
        [str(python), "-c", code], check=True, capture_output=True, timeout=LIMIT_SECONDS
    )
    assert printed.stdout == b"1.0 1.0\n"


def test_a_file_with_another_hash_is_refused(python: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path, "altered", "1.0")
    lock = tmp_path / "lock.txt"
    lock.write_text(f"altered==1.0 --hash=sha256:{'0' * 64}\n")

    done = install(SCRIPT, lock, python, tmp_path)

    assert done.returncode != 0
    assert not list(python.parent.parent.glob("lib/*/site-packages/altered*"))


def install(
    script: Path, lock: Path, python: Path, index: Path
) -> subprocess.CompletedProcess[str]:
    """Install a lock from a folder of wheels, with an empty home."""
    home = index / "home"
    home.mkdir()
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(  # noqa: S603 our own script
        [str(script), str(lock), str(python)],
        env={"PATH": os.environ["PATH"], "HOME": str(home), **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )
