"""Installing the chats as an app: its manifest, its service worker, and the page without a network.

The worker's script begins with the release that it keeps: the addresses of the bundle, and a digest
of them and of the worker. A page that loads its sources one by one is not kept.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_safe

from chat_app.browser.bundle import bundle
from chat_app.browser.site import site_name

if TYPE_CHECKING:
    from django.http import HttpRequest

# Of `tokens.css`, as in the template of all pages.
_BACKGROUND: Final = "#ffffff"
_ICONS: Final = (
    ("chat/icon.svg", "any", "image/svg+xml", "any"),
    ("chat/icons/icon-192.png", "192x192", "image/png", "any"),
    ("chat/icons/icon-512.png", "512x512", "image/png", "any"),
    ("chat/icons/maskable-512.png", "512x512", "image/png", "maskable"),
)
_NAME_CHARS: Final = 30
# Names the release and the person of a page that the service worker may keep.
PAGE_HEADER: Final = "X-Page"


@require_safe
@cache_control(max_age=3600)
def manifest(request: HttpRequest, language: str) -> HttpResponse:
    """Return the web app manifest; `language` is that of the page that names it."""
    del request
    if language not in dict(settings.LANGUAGES):
        raise Http404
    name = site_name()
    with translation.override(language):
        shortcuts = [
            {"name": _("Agents"), "url": reverse("gateway_app:agents")},
            {"name": _("Money"), "url": reverse("money")},
            {"name": _("Account"), "url": reverse("sessions_app:account")},
        ]
    document: dict[str, Any] = {
        "id": "/",
        "name": name,
        "short_name": name[:_NAME_CHARS],
        "lang": language,
        "dir": "auto",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": _BACKGROUND,
        "theme_color": _BACKGROUND,
        "icons": [
            {"src": static(path), "sizes": sizes, "type": kind, "purpose": purpose}
            for path, sizes, kind, purpose in _ICONS
        ],
        "shortcuts": shortcuts,
    }
    return JsonResponse(document, content_type="application/manifest+json")


@require_safe
@cache_control(no_cache=True)
def service_worker(request: HttpRequest) -> HttpResponse:
    """Return the script of the service worker, which serves all paths of this server."""
    del request
    files = _files()
    release = json.dumps(
        {"id": _release(files), "files": files, "icon": static("chat/icons/icon-192.png")}
    )
    script = f"const RELEASE = {release};\n{_worker()}"
    return HttpResponse(script, content_type="text/javascript; charset=utf-8")


@require_safe
@never_cache
def offline(request: HttpRequest) -> HttpResponse:
    """Return the page that the service worker shows in place of those that it does not keep.

    With the query `sign-out` it is the answer to a sign-out that did not reach the server.
    """
    return render(request, "chat_app/offline.html", {"is_sign_out": "sign-out" in request.GET})


def cache_header(user_id: int) -> str:
    """Return the header of a page that the service worker may keep: its release and its person."""
    return f"{_release(_files())}.{user_id}"


def _files() -> list[str]:
    """Return the addresses of the bundle; none where pages load their sources."""
    built = bundle()
    return [] if built is None else [static(f"dist/{name}") for name in sorted(built.files)]


def _release(files: list[str]) -> str:
    return hashlib.sha256("\n".join([_worker(), *files]).encode()).hexdigest()[:16]


@cache
def _worker() -> str:
    path = settings.BASE_DIR / "static" / "offline" / "service-worker.js"
    text: str = path.read_text(encoding="utf-8")
    return text
