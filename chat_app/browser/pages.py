"""The pages of the browser chat: a shell that the components fill.

A page contains no messages. It names the signed-in person and the chat to open; everything else
comes over REST and the socket, which enforce membership.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from csp.constants import NONE, SELF, UNSAFE_INLINE
from csp.decorators import csp_replace, csp_update
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404
from django.shortcuts import render
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from agents_app.demo import translated_descriptions
from agents_app.rest.views import caller
from agents_app.selectors import any_agent_has_a_model, any_agent_takes_calls
from chat_app.browser.installation import PAGE_HEADER, cache_header
from chat_app.contents.drawing import DRAWN_TYPES
from chat_app.contents.quota import ContentOwner, largest_file
from chat_app.people.profiles import profile_data
from chat_app.people.settings import settings_data, settings_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


# As `encodeURIComponent` in the browser.
_UNQUOTED: Final = "!'()*"
# Diagrams are drawn in a frame.
_FRAMES = {"frame-src": [SELF]}
# The page that draws one has no origin, and can reach neither the chat nor any network.
_DIAGRAM_POLICY = {
    "default-src": [NONE],
    "script-src": [SELF],
    "style-src": [SELF, UNSAFE_INLINE],
    "base-uri": [NONE],
    "form-action": [NONE],
    "frame-ancestors": [SELF],
    "sandbox": ["allow-scripts"],
}


@require_safe
@never_cache
@login_required
@ensure_csrf_cookie
@csp_update(_FRAMES)
def chat(request: HttpRequest, chat_id: str = "") -> HttpResponse:
    """Return the shell of the chat; `chat_id` is the chat to open first.

    The id is not looked up: strangers and wrong ids get the same page, and the same answer from
    REST. Without a session the response redirects to the login page.
    """
    context = {"start": _start(request, chat_id), "reads": _first_reads(request, chat_id)}
    response = render(request, "chat_app/chat.html", context)
    response[PAGE_HEADER] = cache_header(caller(request).pk)
    return response


@require_safe
@cache_control(max_age=3600)
@xframe_options_sameorigin
@csp_replace({**dict.fromkeys(settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]), **_DIAGRAM_POLICY})
def diagram(request: HttpRequest) -> HttpResponse:
    """Return the page in whose frame a chat draws a diagram; it carries no data.

    The chat sends it the code by `postMessage`. The drawing code reads untrusted text, so it runs
    without an origin: no cookie, no storage, no request.
    """
    return render(request, "chat_app/diagram.html")


@require_safe
@never_cache
@login_required
@ensure_csrf_cookie
@csp_update(_FRAMES)
def style(request: HttpRequest) -> HttpResponse:
    """Return the page that shows the design tokens and every component in its states.

    It is for staff who work on the server; others get a 404. Its scripts draw samples and send
    nothing.
    """
    if not caller(request).is_staff:
        raise Http404
    start = {**_start(request), "link_cards": True, "transcripts": True}
    return render(request, "admin/chat_app/style.html", {"start": start})


@require_safe
@never_cache
@login_required
@ensure_csrf_cookie
def money(request: HttpRequest) -> HttpResponse:
    """Return the shell of the caller's money page; every figure comes over REST."""
    start = {
        "me": _me(request),
        "csrf_cookie": settings.CSRF_COOKIE_NAME,
    }
    return render(request, "chat_app/money.html", {"start": start})


def _start(request: HttpRequest, chat_id: str = "") -> dict[str, Any]:
    """Return the data that the chat components need at start-up."""
    return {
        "me": _me(request),
        "settings": settings_data(settings_of(caller(request).pk)),
        "chat_id": chat_id,
        "upload_bytes": largest_file(ContentOwner(user_id=caller(request).pk)),
        "link_cards": settings.UAMP_LINK_CARDS,
        "needs_model": not any_agent_has_a_model(),
        "may_connect_model": caller(request).is_superuser,
        "agent_descriptions": translated_descriptions(),
        "transcripts": bool(settings.UAMP_TRANSCRIPTION_URL) or any_agent_takes_calls(),
        "previews": sorted(DRAWN_TYPES),
        "languages": settings.LANGUAGES,
        "csrf_cookie": settings.CSRF_COOKIE_NAME,
    }


def _first_reads(request: HttpRequest, chat_id: str) -> list[str]:
    """Return the addresses that the scripts read first: the browser asks for them beforehand.

    They must be those of `static/chat/` to the letter, or each answer is fetched twice. A chat that
    is opened at one of its messages begins with another part of its history.
    """
    if not chat_id or request.GET.keys() & {"message", "thread"}:
        return []
    chat = f"/api/v1/chats/{quote(chat_id, safe=_UNQUOTED)}"
    history = f"{chat}/messages?limit=50&expand=signature&thread=none&order=desc"
    return [chat, history, f"{chat}/receipts"]


def _me(request: HttpRequest) -> dict[str, Any]:
    user = caller(request)
    return {"id": str(user.pk), "username": user.get_username(), **profile_data(user)}
