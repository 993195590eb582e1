"""`/join/{secret}`: the page of an invite link, where a signed-in person joins (docs/links.md).

Reading the page does not join the chat: that takes a form, which pages of other sites cannot
submit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_required
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agents_app.rest.views import caller
from chat_app.links.invite_links import UsedUp, WasRemoved, invitation, join_by_link
from sessions_app.access import throttles

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Show the invitation, or add the person and open the chat."""
    person = caller(request)
    kind = "writes" if request.method == "POST" else "reads"
    quota = throttles.count(request, kind, person.pk)
    if not quota.allowed:
        context = {"seconds": quota.retry_after}
        refused = render(request, "sessions_app/shared_too_often.html", context, status=429)
        refused["Retry-After"] = str(quota.retry_after)
        return _private(refused)
    status = 200
    if request.method == "POST":
        try:
            chat_id = join_by_link(secret, person)
        except WasRemoved:
            status = 403
        except UsedUp:
            status = 409
        else:
            if chat_id is not None:
                return redirect("chat", chat_id=chat_id)
    found = invitation(secret, person)
    if found is None:
        return _private(render(request, "sessions_app/no_invitation.html", status=404))
    return _private(
        render(request, "sessions_app/invitation.html", {"invitation": found}, status=status)
    )


def _private(response: HttpResponse) -> HttpResponse:
    """Keep the page out of search engines.

    The referrer policy remains `same-origin`: with `no-referrer`, browsers submit the form with the
    origin `null`, which is refused.
    """
    response["X-Robots-Tag"] = "noindex, nofollow, noarchive"
    return response
