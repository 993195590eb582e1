"""Template tags for scripts and styles: the files of the bundle, or the sources it is made of.

`make pages` writes `static/dist` with a manifest of SHA-256 digests. The bundle counts only while
all its sources and files have them; a tree in which one was edited serves the sources themselves.
"""

from __future__ import annotations

import hashlib
import logging
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
from django import template
from django.conf import settings
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from django.utils.safestring import SafeString

_FOLDER: Final = "dist"
_log = logging.getLogger(__name__)
register = template.Library()


class BundleManifest(msgspec.Struct, frozen=True):
    """The files that each source begins with, and the digests of all files and all sources."""

    entries: dict[str, tuple[str, ...]]
    files: dict[str, str]
    sources: dict[str, str]


@register.simple_tag
def page_style(source: str) -> SafeString:
    """Return the link to a style sheet."""
    return format_html('<link rel="stylesheet" href="{}">', _addresses(source)[0])


@register.simple_tag
def page_script(source: str, *imported: str) -> SafeString:
    """Return the element of a module, and preloads of what it imports.

    `imported` are modules that it imports while it runs, as soon as it can.
    """
    script, *others = _addresses(source)
    # The sources are too many to be named here.
    if bundle() is not None:
        others += [address for name in imported for address in _addresses(name)]
    links = ((address,) for address in dict.fromkeys(others) if address != script)
    return format_html(
        '<script type="module" src="{}"></script>{}',
        script,
        format_html_join("", '<link rel="modulepreload" href="{}">', links),
    )


@register.simple_tag
def page_prefetch(*sources: str) -> SafeString:
    """Return links by which a browser that is idle fetches the bundle of the page to come."""
    built_sources = () if bundle() is None else sources
    addresses = dict.fromkeys(address for source in built_sources for address in _addresses(source))
    links = ((address,) for address in addresses)
    return format_html_join("", '<link rel="prefetch" href="{}">', links)


def bundle() -> BundleManifest | None:
    """Return the manifest of the bundle, or None where the pages load their sources."""
    if not settings.UAMP_BUNDLED_PAGES:
        return None
    folder = settings.BASE_DIR / "static"
    # Who edits the sources of a running server has DEBUG on.
    return read_bundle(folder) if settings.DEBUG else _read_once(folder)


def read_bundle(folder: Path) -> BundleManifest | None:
    """Return the manifest of the bundle in a folder of static files, if it matches them."""
    try:
        text = (folder / _FOLDER / "manifest.json").read_bytes()
        manifest = msgspec.json.decode(text, type=BundleManifest)
    except (OSError, msgspec.DecodeError):
        return None
    is_current = _match(folder, manifest.sources) and _match(folder / _FOLDER, manifest.files)
    return manifest if is_current else None


@cache
def _read_once(folder: Path) -> BundleManifest | None:
    manifest = read_bundle(folder)
    if manifest is None:
        _log.warning("static/dist does not match its sources: pages load them one by one")
    return manifest


def _match(folder: Path, digests: Mapping[str, str]) -> bool:
    """Return whether all files of a folder have their digests."""
    try:
        return all(
            hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
            for name, digest in digests.items()
        )
    except OSError:
        return False


def _addresses(source: str) -> list[str]:
    """Return the address of a source, and those of the files that it imports."""
    manifest = bundle()
    if manifest is None:
        return [static(source)]
    return [static(f"{_FOLDER}/{name}") for name in manifest.entries[source]]
