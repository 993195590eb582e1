"""Bundles of other releases, so that processes of two releases serve each other's pages.

During a rolling update, any process may get the requests of a page that another release made. The
name of a bundle has a digest of its text: copies of all releases fit into one folder of DATA_DIR,
which the processes share.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings

BUNDLE: Final = re.compile(r"[\w-]+-[0-9A-Z]{8}\.(?:css|js)", re.ASCII)
"""The names of bundles. The build puts the digest into them."""
REFRESH_SECONDS: Final = 24 * 3600
KEEP_SECONDS: Final = 30 * 24 * 3600
"""How long a copy outlasts the last process of its release."""

logger = logging.getLogger(__name__)


def copies_folder() -> Path:
    """Return the folder of the copies."""
    return Path(settings.DATA_DIR) / "bundles"


async def refresh_daily() -> None:
    """Refresh the copies once a day for as long as the process runs."""
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        await asyncio.to_thread(refresh_copies)


def refresh_copies() -> None:
    """Copy this release's bundles, mark the copies as in use, and delete those long out of use.

    A failure is logged rather than raised: only pages that are open during an update need copies.
    """
    try:
        _refresh(Path(settings.BASE_DIR) / "static" / "dist", copies_folder())
    except OSError as error:
        logger.warning(
            "bundles cannot be copied (%s): pages that are open during an update may break", error
        )


def _refresh(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    # A checkout may have no bundles.
    files = source.iterdir() if source.is_dir() else ()
    for file in files:
        if BUNDLE.fullmatch(file.name):
            _copy_file(file, target / file.name)
    oldest = time.time() - KEEP_SECONDS
    for file in target.iterdir():
        # Another process may delete it, too.
        with suppress(FileNotFoundError):
            if file.stat().st_mtime < oldest:
                file.unlink()


def _copy_file(source: Path, target: Path) -> None:
    """Mark the copy as in use, or make it; a reader never sees part of it."""
    try:
        os.utime(target)
    except FileNotFoundError:
        pass
    else:
        return
    # Containers that share the folder may have the same process id.
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as draft:
        path = Path(draft.name)
        try:
            with source.open("rb") as text:
                shutil.copyfileobj(text, draft)
            draft.flush()
            os.fsync(draft.fileno())
            path.replace(target)
        except OSError:
            path.unlink()
            raise
