"""The periodic job that reads the documents of hubs again."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from federation_app.peers import hubs
from sessions_app import database
from sessions_app.process import registry

SECONDS: Final = 60.0


async def read_hubs() -> None:
    """Read the hubs that are due. The periodic job of each process."""
    if settings.UAMP_FEDERATION_HOST and not registry.current().draining:
        await database.run(hubs.read_due)
