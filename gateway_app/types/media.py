"""Media as foreign protocols write them, and links to media for text-only clients."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Final

import uamp
from uamp.types.content import is_url
from uamp.types.inline_media import is_data_url, media_type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from uamp.types.content import Media

_TYPES: Final = mimetypes.MimeTypes()


def medium_of(text: str) -> Media:
    """Return base64 or a `data:` URL as it is, and any other URL as a reference."""
    return uamp.MediaUrl(url=text) if is_url(text) and not is_data_url(text) else text


def content_of(content_id: str) -> str | None:
    """Return the URL of a content of this server; None if the id is not well-formed."""
    url = f"/api/content/{content_id}"
    return None if uamp.content_id_of(url) is None else url


def file_item(text: str, filename: str | None) -> uamp.FileContent:
    """Build a document from base64 data or a URL; its URL or its name gives the media type."""
    name = filename or "file"
    guessed = _TYPES.guess_type(name)[0] or "application/octet-stream"
    mime_type = media_type_of(text) or guessed
    return uamp.FileContent(file=medium_of(text), filename=name, mime_type=mime_type)


def markdown_link(kind: str, medium: Media | None, label: str, link: Callable[[str], str]) -> str:
    """Return a Markdown link to a medium stored here, inline for a picture; '' otherwise."""
    if not isinstance(medium, uamp.MediaUrl):
        return ""
    title = label.replace("[", "(").replace("]", ")").replace("\n", " ")
    return f"{'!' if kind == 'image' else ''}[{title or kind}]({link(medium.url)})"
