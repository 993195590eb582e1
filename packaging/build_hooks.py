"""Hooks of hatchling for the server's wheel: requirements, digest of static files, materials."""

from __future__ import annotations

import hashlib
import json
import runpy
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARIES: Final = ("uamp-server-uamp[client]", "uamp-server-upp", "uamp-server-uap")
DIGEST_CHARS: Final = 12


class Requirements(MetadataHookInterface):
    """Requires what requirements/runtime.in lists, except what an extra has, and the libraries."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dependencies."""
        extras = {name for names in metadata["optional-dependencies"].values() for name in names}
        lines = (Path(self.root) / "requirements" / "runtime.in").read_text().splitlines()
        required = [line for line in lines if line and not line.startswith(("#", "-"))]
        metadata["dependencies"] = [
            *(f"{library}=={metadata['version']}" for library in LIBRARIES),
            *(line for line in required if line not in extras),
        ]


class Additions(BuildHookInterface[Any]):
    """Adds a digest of the static files, which is part of their addresses, and the materials."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add `static.digest` to the wheel, and the bill of materials to its `sboms` (PEP 770)."""
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        self._folder = tempfile.TemporaryDirectory()
        digest = Path(self._folder.name) / "static.digest"
        digest.write_text(_digest_of(root))
        build_data["force_include"][str(digest)] = "uamp_project/assets/static.digest"
        materials = Path(self._folder.name) / "uamp-server.cdx.json"
        made = runpy.run_path(str(root / "packaging" / "bill_of_materials.py"))["document"](root)
        materials.write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
        build_data["sbom_files"].append(str(materials))
        for file in (digest, materials):
            file.chmod(0o644)

    def finalize(self, *_: object) -> None:
        """Delete the files that `initialize` wrote."""
        folder = getattr(self, "_folder", None)
        if folder is not None:
            folder.cleanup()


def _digest_of(root: Path) -> str:
    digest = hashlib.sha256()
    for path in _static_files(root):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    # The files of the admin and of the API's pages change with their packages.
    digest.update((root / "requirements" / "runtime.txt").read_bytes())
    return digest.hexdigest()[:DIGEST_CHARS]


def _static_files(root: Path) -> Iterator[Path]:
    for folder in (root / "static", root / "chat_app" / "static"):
        yield from sorted(path for path in folder.rglob("*") if path.is_file())
