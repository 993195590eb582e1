"""Hooks of hatchling for the server's wheel: its requirements, the digest of static files."""

from __future__ import annotations

import hashlib
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


class StaticDigest(BuildHookInterface[Any]):
    """Writes a digest of the static files, which is part of their addresses."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file `static.digest` to the wheel."""
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        digest = hashlib.sha256()
        for path in _static_files(root):
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        # The files of the admin and of the API's pages change with their packages.
        digest.update((root / "requirements" / "runtime.txt").read_bytes())
        with tempfile.NamedTemporaryFile("w", suffix=".digest", delete=False) as file:
            file.write(digest.hexdigest()[:DIGEST_CHARS])
        self._digest = Path(file.name)
        self._digest.chmod(0o644)
        build_data["force_include"][file.name] = "uamp_project/assets/static.digest"

    def finalize(self, *_: object) -> None:
        """Delete the file that `initialize` wrote."""
        digest = getattr(self, "_digest", None)
        if digest is not None:
            digest.unlink(missing_ok=True)


def _static_files(root: Path) -> Iterator[Path]:
    for folder in (root / "static", root / "chat_app" / "static"):
        yield from sorted(path for path in folder.rglob("*") if path.is_file())
