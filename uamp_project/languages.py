"""The language of the pages, and the catalogue of translations for their scripts.

A page is in the language of the account, else in the one chosen in this browser, else in the first
supported one of Accept-Language. REST, the protocols and the logs are always in English, because
programs read them.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.conf import settings
from django.http import Http404, HttpResponse
from django.test import RequestFactory
from django.urls import reverse
from django.utils import translation
from django.utils.cache import get_conditional_response, patch_vary_headers
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
    """Load the catalogues of all languages, so that the event loop never reads them from disk."""
    for language, _ in settings.LANGUAGES:
        trans_real.translation(language)


def _is_page(request: HttpRequest) -> bool:
    """Return whether a page for people is requested."""
    is_rest = request.path_info.startswith("/api/")
    return not is_rest and "text/html" in request.headers.get("Accept", "")


def _supported(language: str) -> str:
    """Return the code of a language if this server supports it, else ''."""
    return language if language in dict(settings.LANGUAGES) else ""


def _described(
    request: HttpRequest, response: HttpResponse, language: str, account: str
) -> HttpResponse:
    """Set the headers of a page about its language, which depends on the reader.

    The account's language is also stored in the browser, for the pages before signing in.
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
    """Answer in the person's language, which costs one query, for pages only.

    Django's LocaleMiddleware does not fit: it sets Vary on every response, including REST, and does
    not know accounts.
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
    """Return the language chosen by a signed-in person, else ''. Synchronous."""
    if settings.SESSION_COOKIE_NAME not in request.COOKIES or not request.user.is_authenticated:
        return ""
    return _supported(person_settings.language_of(request.user.pk))


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Store the language of the form for this browser, and for a signed-in person's account."""
    language = _supported(request.POST.get("language", ""))
    if language and request.user.is_authenticated:
        change = person_settings.SettingsChange(language=language)
        person_settings.update_settings(user_id=request.user.pk, change=change)
    return set_language(request)


@lru_cache
def _catalogue(language: str) -> tuple[bytes, str]:
    """Return the script with a language's translations, and its digest."""
    with translation.override(language):
        view = JavaScriptCatalog()
        view.packages = ["uamp_project"]
        response: HttpResponse = view.get(RequestFactory().get("/"))
    script = response.content
    return script, hashlib.sha256(script).hexdigest()[:16]


def words_script(_: HttpRequest) -> dict[str, str]:
    """Return `words_script` for templates: the URL of the active language's catalogue."""
    language = translation.get_language()
    address = reverse("jsi18n", args=[language])
    return {"words_script": f"{address}?release={_catalogue(language)[1]}"}


@require_safe
async def catalogue(request: HttpRequest, language: str) -> HttpResponse:
    """Return a language's translations as Django's script `django.gettext`, cached by release."""
    if language not in dict(settings.LANGUAGES):
        raise Http404
    script, digest = _catalogue(language)
    response = HttpResponse(script, content_type="text/javascript; charset=utf-8")
    response.headers["ETag"] = f'"{digest}"'
    is_current = request.GET.get("release") == digest
    response.headers["Cache-Control"] = (
        f"public, max-age={YEAR_SECONDS}, immutable" if is_current else "no-cache"
    )
    answer = get_conditional_response(request, etag=response["ETag"], response=response)
    # Other conditions, by date, are ignored.
    is_known = answer is not None and answer.status_code == HTTPStatus.NOT_MODIFIED
    return answer if answer is not None and is_known else response
