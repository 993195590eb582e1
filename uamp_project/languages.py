"""The language of the pages: which one a person reads, and the catalogue that their scripts take.

Pages are made in the language of the account, else in the one that was chosen in this browser, else
in the first one of Accept-Language that this server has. REST, the protocols and the logs are
English for everybody: programs read them.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.conf import settings
from django.http import Http404, HttpResponse, HttpResponseNotModified
from django.test import RequestFactory
from django.urls import reverse
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.decorators import sync_and_async_middleware
from django.utils.translation import trans_real
from django.views.decorators.http import require_POST, require_safe
from django.views.i18n import JavaScriptCatalog, set_language

from chat_app.people import settings as person_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

YEAR_SECONDS: Final = 365 * 24 * 3600


def load() -> None:
    """Read the catalogues of all languages: the event loop reads no file for the first page."""
    for language, _ in settings.LANGUAGES:
        trans_real.translation(language)


def _is_page(request: HttpRequest) -> bool:
    """Return whether a page is asked for, which a person reads."""
    is_rest = request.path_info.startswith("/api/")
    return not is_rest and "text/html" in request.headers.get("Accept", "")


def _known(language: str) -> str:
    """Return the code of a language that this server still has, else ''."""
    return language if language in dict(settings.LANGUAGES) else ""


def _described(
    request: HttpRequest, response: HttpResponse, language: str, account: str
) -> HttpResponse:
    """Say of a page which language it has, and that others may get it in another one.

    The language of an account is kept in the browser for the pages before signing in.
    """
    is_page = response.headers.get("Content-Type", "").startswith("text/html")
    if is_page and not request.path_info.startswith("/api/"):
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        response.headers.setdefault("Content-Language", language)
        if account and request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME) != account:
            _keep(response, account)
    return response


def _keep(response: HttpResponse, language: str) -> None:
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        language,
        max_age=settings.LANGUAGE_COOKIE_AGE,
        secure=settings.LANGUAGE_COOKIE_SECURE,
        httponly=settings.LANGUAGE_COOKIE_HTTPONLY,
        samesite="Lax",
    )


@sync_and_async_middleware
def language_middleware(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Answer a request in the language of its person; only for a page one query is made for it.

    Django's LocaleMiddleware is not used: it varies every answer, those of REST too, and knows no
    accounts.
    """
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponse:
            account, language = "", settings.LANGUAGE_CODE
            if _is_page(request):
                account = await sync_to_async(_language_of_account)(request)
                language = account or translation.get_language_from_request(request)
            with translation.override(language):
                return _described(request, await get_response(request), language, account)

        return answer_async

    def answer(request: HttpRequest) -> HttpResponse:
        account, language = "", settings.LANGUAGE_CODE
        if _is_page(request):
            account = _language_of_account(request)
            language = account or translation.get_language_from_request(request)
        with translation.override(language):
            return _described(request, get_response(request), language, account)

    return answer


def _language_of_account(request: HttpRequest) -> str:
    """Return what the signed-in person chose; '' for nothing and for a visitor. Synchronous."""
    if settings.SESSION_COOKIE_NAME not in request.COOKIES or not request.user.is_authenticated:
        return ""
    return _known(person_settings.language_of(request.user.pk))


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Take the language of the form for this browser, and for the account of who is signed in."""
    language = _known(request.POST.get("language", ""))
    if language and request.user.is_authenticated:
        change = person_settings.SettingsChange(language=language)
        person_settings.update_settings(user_id=request.user.pk, change=change)
    return set_language(request)


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
