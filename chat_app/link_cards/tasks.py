"""Workers that read linked pages."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Final

from celery import shared_task

from agents_app.outbound import guard
from agents_app.outbound.rules import current_policy
from agents_app.tools.charsets import decode
from chat_app.link_cards import cards
from chat_app.link_cards.heads import PageHead, read_head

logger = logging.getLogger(__name__)

SECONDS: Final = 5.0
PAGE_BYTES: Final = 1024 * 1024
EXPIRES_SECONDS: Final = 60
_HEADERS: Final = {
    "User-Agent": "uamp-server (link card)",
    "Accept": "text/html,application/xhtml+xml",
}
_HTML: Final = {"text/html", "application/xhtml+xml"}
_OK: Final = 200


def ask(url: str) -> None:
    """Have a worker read a page; without a broker, the page is requested again later."""
    try:
        read_link.apply_async(kwargs={"url": url}, retry=False, expires=EXPIRES_SECONDS)
    except Exception:
        logger.warning("no worker was asked to read a linked page", exc_info=True)


@shared_task
def read_link(*, url: str, **kwargs: Any) -> None:
    """Read the head of a page and store it."""
    if kwargs:
        logger.info("ignored arguments from a newer caller: %s", ", ".join(kwargs))
    cards.keep(url, _head(url))


def _head(url: str) -> PageHead | None:
    settings = current_policy()
    policy = replace(
        settings,
        seconds=min(settings.seconds, SECONDS),
        max_bytes=min(settings.max_bytes, PAGE_BYTES),
    )
    try:
        fetched = guard.fetch(url, policy, headers=_HEADERS)
    except (guard.Unreachable, guard.TooLarge):
        # The guard has logged why.
        return None
    if fetched.status != _OK or fetched.media_type not in _HTML:
        return None
    return read_head(decode(fetched.data, fetched.charset))
