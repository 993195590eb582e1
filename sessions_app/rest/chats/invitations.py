"""`/join/{secret}`: the page of an invite link, where people join (docs/links.md).

A visitor signs in there or creates an account, unless UAMP_INVITED_ACCOUNTS is off. Reading the
page does not join the chat: that takes a form, which pages of other sites cannot submit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.views import redirect_to_login
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from agents_app.rest.views import caller
from chat_app.links.invite_links import UsedUp, WasRemoved, invitation, join_by_link
from sessions_app.access import throttles
from sessions_app.access.invited import AccountForm, NameTaken, join_with_new_account

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from sessions_app.access.rates import Quota

_BACKEND = "django.contrib.auth.backends.ModelBackend"


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Show the invitation, or add the person and open the chat."""
    if not request.user.is_authenticated:
        return _join_as_visitor(request, secret)
    person = caller(request)
    kind = "writes" if request.method == "POST" else "reads"
    quota = throttles.count(request, kind, person.pk)
    if not quota.allowed:
        return _too_often(request, quota)
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
    return _show(request, invitation(secret, person), status=status)


def _join_as_visitor(request: HttpRequest, secret: str) -> HttpResponse:
    """Show the invitation with a form for an account, or create the account and open the chat."""
    if settings.UAMP_OIDC_ISSUER or not settings.UAMP_INVITED_ACCOUNTS:
        return redirect_to_login(request.get_full_path())
    quota = throttles.count(request, "shared pages", None)
    if not quota.allowed:
        return _too_often(request, quota)
    invite = invitation(secret, None)
    form = AccountForm(request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST" and invite is not None:
        # The password of an account costs as much as one that is checked.
        quota = throttles.count(request, "sign-ins", None)
        if not quota.allowed:
            return _too_often(request, quota)
        status = 400
        if form.is_valid():
            try:
                made = join_with_new_account(secret, **form.cleaned_data)
            except NameTaken:
                form.add_error("username", AccountForm.TAKEN)
            except UsedUp:
                status = 409
                invite = invitation(secret, None)
            else:
                if made is not None:
                    user, chat_id = made
                    login(request, user, backend=_BACKEND)
                    return redirect("chat", chat_id=chat_id)
                invite = None
    return _show(request, invite, status=status, form=form)


def _show(request: HttpRequest, invite: Any, *, status: int, **context: Any) -> HttpResponse:
    """Return the page of an invitation, or of none."""
    if invite is None:
        return _private(render(request, "sessions_app/no_invitation.html", status=404))
    context["invitation"] = invite
    return _private(render(request, "sessions_app/invitation.html", context, status=status))


def _too_often(request: HttpRequest, quota: Quota) -> HttpResponse:
    context = {"seconds": quota.retry_after}
    refused = render(request, "sessions_app/shared_too_often.html", context, status=429)
    refused["Retry-After"] = str(quota.retry_after)
    return _private(refused)


def _private(response: HttpResponse) -> HttpResponse:
    """Keep the page out of search engines.

    The referrer policy remains `same-origin`: with `no-referrer`, browsers submit the form with the
    origin `null`, which is refused.
    """
    response["X-Robots-Tag"] = "noindex, nofollow, noarchive"
    return response
