"""The language of the pages: which one a person reads, and the catalogue that their scripts take.

Pages are made in the language that the person chose, else in the first one of Accept-Language that
this server has. REST, the protocols and the logs are English for everybody: programs read them.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import Http404, HttpResponse, HttpResponseNotModified
from django.test import RequestFactory
from django.urls import reverse
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.decorators import sync_and_async_middleware
from django.views.decorators.http import require_safe
from django.views.i18n import JavaScriptCatalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

YEAR_SECONDS: Final = 365 * 24 * 3600


def load() -> None:
    """Read the catalogues of all languages: the event loop reads no file for the first page."""
    for language, _ in settings.LANGUAGES:
        with translation.override(language):
            translation.gettext("")


def _language_of(request: HttpRequest) -> str:
    """Return the language of the answer: English where no page is asked for."""
    if request.path_info.startswith("/api/") or "text/html" not in request.headers.get(
        "Accept", ""
    ):
        return settings.LANGUAGE_CODE
    return translation.get_language_from_request(request)


def _described(request: HttpRequest, response: HttpResponse, language: str) -> HttpResponse:
    """Say of a page which language it has, and that others may get it in another one."""
    is_page = response.headers.get("Content-Type", "").startswith("text/html")
    if is_page and not request.path_info.startswith("/api/"):
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        response.headers.setdefault("Content-Language", language)
    return response


@sync_and_async_middleware
def language_middleware(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Answer a request in the language of its person; no query is made for it.

    Django's LocaleMiddleware is not used: it varies every answer, those of REST too.
    """
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponse:
            language = _language_of(request)
            with translation.override(language):
                return _described(request, await get_response(request), language)

        return answer_async

    def answer(request: HttpRequest) -> HttpResponse:
        language = _language_of(request)
        with translation.override(language):
            return _described(request, get_response(request), language)

    return answer


@lru_cache
def _catalogue(language: str) -> tuple[bytes, str]:
    """Return the script with the words of a language, and its digest."""
    with translation.override(language):
        view = JavaScriptCatalog()
        view.packages = ["uamp_project"]
        response: HttpResponse = view.get(RequestFactory().get("/"))
    script = response.content
    return script, hashlib.sha256(script).hexdigest()[:16]


def words_script(_: HttpRequest) -> dict[str, str]:
    """Give templates `words_script`: the address of the catalogue in the active language."""
    language = translation.get_language()
    address = reverse("jsi18n", args=[language])
    return {"words_script": f"{address}?release={_catalogue(language)[1]}"}


@require_safe
async def catalogue(request: HttpRequest, language: str) -> HttpResponse:
    """Return the words of a language as Django's script `django.gettext`, cached by its release."""
    if language not in dict(settings.LANGUAGES):
        raise Http404
    script, digest = _catalogue(language)
    etag = f'"{digest}"'
    response: HttpResponse
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponseNotModified()
    else:
        response = HttpResponse(script, content_type="text/javascript; charset=utf-8")
    response.headers["ETag"] = etag
    is_current = request.GET.get("release") == digest
    response.headers["Cache-Control"] = (
        f"public, max-age={YEAR_SECONDS}, immutable" if is_current else "no-cache"
    )
    return response
