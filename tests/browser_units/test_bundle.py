"""The bundle of the chat page is made of the sources that are here, and counts only then."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from chat_app.browser.bundle import bundle, read_bundle

if TYPE_CHECKING:
    from pytest_django import Settings

ROOT: Final = Path(__file__).resolve().parents[2]
STATIC: Final = ROOT / "static"
DIST: Final = STATIC / "dist"
SMALL_BYTES: Final = 1000
# Up to where a part of the address is put in.
OWN_ADDRESS: Final = re.compile(r"""(?:new URL\(|import\()["`](\.{1,2}/[^"`$]*)""")
LISTENS: Final = re.compile(r'^ +addEventListener\("([a-z]+-[a-z-]+)"', re.MULTILINE)
# The dialog draws what the browser says when it opens.
NOT_REPEATED: Final = {"notification-permission"}
# Compares each file with what is in the one that is packed by brotli, which Python cannot read.
UNPACK: Final = """
import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
for (const name of process.argv.slice(1)) {
  const unpacked = brotliDecompressSync(readFileSync(`${name}.br`));
  if (!unpacked.equals(readFileSync(name))) console.log(name);
}
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the sources and the bundle."""
    return Path(shutil.copytree(STATIC, tmp_path / "static"))


def test_the_bundle_is_of_these_sources() -> None:
    assert read_bundle(STATIC) is not None, "run: make pages"


def test_the_folder_has_the_files_of_the_manifest_and_packs_the_large_ones_twice() -> None:
    manifest = read_bundle(STATIC)
    assert manifest is not None, "run: make pages"
    large = [name for name in manifest.files if (DIST / name).stat().st_size > SMALL_BYTES]
    packed = {f"{name}{ending}" for name in large for ending in (".br", ".gz")}

    assert {path.name for path in DIST.iterdir()} == {*manifest.files, *packed, "manifest.json"}


def test_packed_files_have_the_content_of_their_files() -> None:
    names = sorted(path.with_suffix("") for path in DIST.glob("*.gz"))
    for path in names:
        assert gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes()) == path.read_bytes()
    node = shutil.which("node", path=f"{ROOT / '.venv/bin'}")
    assert node is not None
    differing = subprocess.run(  # noqa: S603 our own program
        [node, "--input-type=module", "-e", UNPACK, "--", *names],
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert differing.stdout == b""


def test_the_licences_of_what_is_bundled_stay_in_it() -> None:
    scripts = "".join(path.read_text() for path in DIST.glob("*.js"))

    assert "@license DOMPurify" in scripts
    assert scripts.count("Copyright") >= 4


def test_what_the_bundle_loads_by_its_own_address_is_there() -> None:
    scripts = "".join(path.read_text() for path in DIST.glob("*.js"))
    addresses = OWN_ADDRESS.findall(scripts)

    assert len(addresses) > 4
    assert [address for address in addresses if not (DIST / address).exists()] == []


def test_what_only_later_parts_listen_for_is_repeated_for_them() -> None:
    chat = STATIC / "chat"
    later = (chat / "later.js").read_text()
    modules = [chat / name for name in re.findall(r'^import "\./(.+)";', later, re.MULTILINE)]
    listened = re.findall(r'^on\("([\w-]+)"', later, re.MULTILINE)
    for module in modules:
        listened += LISTENS.findall(module.read_text())
    repeated = re.search(r"EVENTS = \[(.*?)\]", (chat / "deferred.js").read_text(), re.DOTALL)

    assert repeated is not None
    assert set(re.findall(r'"([\w-]+)"', repeated[1])) == set(listened) - NOT_REPEATED


@pytest.mark.parametrize("name", ["chat/app.js", "chat/styles/money.css", "vendor/lit/lit.js"])
def test_a_bundle_of_other_sources_does_not_count(copy: Path, name: str) -> None:
    assert read_bundle(copy) is not None
    with (copy / name).open("a") as source:
        source.write("\n")

    assert read_bundle(copy) is None


@pytest.mark.parametrize("name", ["chat/context.js", "dist/manifest.json"])
def test_a_bundle_without_a_source_or_its_manifest_does_not_count(copy: Path, name: str) -> None:
    (copy / name).unlink()

    assert read_bundle(copy) is None


def test_a_bundle_that_was_changed_does_not_count(copy: Path) -> None:
    next((copy / "dist").glob("app-*.js")).write_text("changed")

    assert read_bundle(copy) is None


def test_a_manifest_that_cannot_be_read_does_not_count(copy: Path) -> None:
    (copy / "dist/manifest.json").write_text("<<<<<<< a conflict")

    assert read_bundle(copy) is None


def test_the_bundle_can_be_switched_off(settings: Settings) -> None:
    assert bundle() is not None
    settings.UAMP_BUNDLED_PAGES = False

    assert bundle() is None
