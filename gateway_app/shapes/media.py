"""Media as foreign protocols write them, and links to media for clients that read text alone."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Final

import uamp
from uamp.types.content import is_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from uamp.types.content import Media

_TYPES: Final = mimetypes.MimeTypes()


def medium_of(text: str) -> Media:
    """Return base64 data, also of a `data:` URL, or the reference that another URL is."""
    if text.startswith("data:"):
        return text.partition(",")[2]
    return uamp.MediaUrl(url=text) if is_url(text) else text


def content_of(content_id: str) -> str | None:
    """Return the URL of a content of this server; None for what is no id of one."""
    url = f"/api/content/{content_id}"
    return None if uamp.content_id_of(url) is None else url


def file_item(text: str, filename: str | None) -> uamp.FileContent:
    """Return a document that is base64 data or a URL; its name or its URL say its type."""
    name = filename or "file"
    head = text[: text.find(",")] if text.startswith("data:") else ""
    declared = head.removeprefix("data:").partition(";")[0]
    guessed = _TYPES.guess_type(name)[0] or "application/octet-stream"
    return uamp.FileContent(file=medium_of(text), filename=name, mime_type=declared or guessed)


def markdown_link(kind: str, medium: Media | None, label: str, link: Callable[[str], str]) -> str:
    """Return a link to a medium that is kept here, a picture's as Markdown shows it; else ''."""
    if not isinstance(medium, uamp.MediaUrl):
        return ""
    shown = label.replace("[", "(").replace("]", ")").replace("\n", " ")
    return f"{'!' if kind == 'image' else ''}[{shown or kind}]({link(medium.url)})"
