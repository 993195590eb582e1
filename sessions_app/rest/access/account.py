"""The pages of a person's own account: password, other browsers, and API keys for programs.

The forms work without scripts. They require a browser session: API keys can neither create keys nor
change the password. Each form counts as one of the person's writes (`rates`).
"""

from __future__ import annotations

from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, update_session_auth_hash, views
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.hashers import make_password
from django.http import Http404
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from agents_app.rest.views import address_of, caller
from sessions_app.access import keys, throttles
from sessions_app.rest.access.key_forms import GRACE_PERIODS, KeyForm, RotationForm, listed_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

PAGE: Final = "sessions_app:account"
# Key in the Django session for a new key, from the form until the page displays it.
NEW_KEY: Final = "new_api_key"


class OwnPasswordForm(PasswordChangeForm):
    """Django's form, with the old password checked like on the login page (docs/adr/0013).

    Failures are counted, so an unattended browser does not allow unlimited guessing.
    """

    def __init__(self, user: User, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self._request = request

    def clean_old_password(self) -> str:
        """Reject a wrong password."""
        old: str = self.cleaned_data["old_password"]
        name = self.user.get_username()
        if authenticate(self._request, username=name, password=old) is None:
            raise forms.ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return old


class SignOutForm(OwnPasswordForm):
    """The password of a person who is signing out their other browsers."""

    new_password1 = None  # type: ignore[assignment] # Django's way to remove a field
    new_password2 = None  # type: ignore[assignment]  # as above

    def clean(self) -> dict[str, Any]:
        """Skip the comparison of new passwords, which this form does not have."""
        return self.cleaned_data


def counted(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Count a form as a write of the person who submits it; respond 429 beyond the limit."""

    @wraps(view)
    def counted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST":
            quota = throttles.count(request, "writes", request.user.pk)
            if not quota.allowed:
                seconds = quota.retry_after
                refused = render(
                    request, "sessions_app/too_often.html", {"seconds": seconds}, status=429
                )
                refused["Retry-After"] = str(seconds)
                return refused
        return view(request, *args, **kwargs)

    return counted


@require_safe
@never_cache
@login_required
def account(request: HttpRequest) -> HttpResponse:
    """Show the person's keys, a new one once, and the link to change the password."""
    # A HEAD request displays nothing, so the key must be kept for the page.
    new = request.session.pop(NEW_KEY, {}) if request.method == "GET" else {}
    return _page(request, **new)


@require_POST
@never_cache
@login_required
@counted
def make_key(request: HttpRequest) -> HttpResponse:
    """Create a key, and redirect to the page that displays its secret once.

    The redirect keeps a page reload from creating another key. The secret stays in the Django
    session until the page displays it.
    """
    user_id = caller(request).pk
    form = KeyForm(request.POST, user_id=user_id)
    if not form.is_valid():
        return _page(request, form, status=400)
    try:
        made = keys.make_key(user_id, form.key_request(), address=address_of(request))
    except keys.TooManyKeys:
        form.add_error(None, f"You have {settings.UAMP_KEYS_PER_USER} keys. Revoke one first.")
        return _page(request, form, status=409)
    except keys.ImpossibleKey as error:
        form.add_error(None, str(error))
        return _page(request, form, status=400)
    request.session[NEW_KEY] = {"secret": made.secret, "made": made.key.name}
    return redirect(PAGE)


@require_POST
@never_cache
@login_required
@counted
def rotate_key(request: HttpRequest, key_id: int) -> HttpResponse:
    """Replace the secret of the person's own key, and redirect like `make_key`."""
    key = keys.find_key(caller(request).pk, key_id)
    form = RotationForm(request.POST)
    if key is None or not form.is_valid():
        raise Http404
    try:
        made = keys.rotate_key(
            key,
            by=caller(request),
            keep=timedelta(seconds=form.cleaned_data["seconds"]),
            address=address_of(request),
        )
    except LookupError:
        raise Http404 from None
    request.session[NEW_KEY] = {"secret": made.secret, "made": made.key.name, "rotated": True}
    return redirect(PAGE)


@require_POST
@never_cache
@login_required
@counted
def revoke_key(request: HttpRequest, key_id: int) -> HttpResponse:
    """Revoke one of the person's own keys."""
    user = caller(request)
    key = keys.find_key(user.pk, key_id)
    if key is None or not keys.revoke_key(key, by=user, address=address_of(request)):
        raise Http404
    messages.success(request, "The key was revoked. Its connections end within five seconds.")
    return redirect(PAGE)


@require_POST
@never_cache
@login_required
@counted
def sign_out_others(request: HttpRequest) -> HttpResponse:
    """Sign the person out of all other browsers; their password and keys are unaffected.

    Django's sessions contain a hash of the stored password. Storing the same password with a new
    salt ends all sessions except the one that is given the new hash.
    """
    user = caller(request)
    form = SignOutForm(user, request.POST, request=request)
    if not form.is_valid():
        return _page(request, status=400, sign_out=form)
    user.password = make_password(form.cleaned_data["old_password"])
    user.save(update_fields=["password"])
    update_session_auth_hash(request, user)
    messages.success(request, "Your other browsers were signed out.")
    return redirect(PAGE)


@method_decorator([never_cache, login_required, counted], name="dispatch")
class PasswordView(views.PasswordChangeView):
    """Password change, which ends other browsers' sessions and all API keys (`passwords`)."""

    form_class = OwnPasswordForm
    template_name = "sessions_app/password.html"
    success_url = reverse_lazy(PAGE)

    def get_form_kwargs(self) -> dict[str, Any]:
        """Pass the request to the form."""
        return {**super().get_form_kwargs(), "request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        """Change the password, and list what has ended."""
        changed = super().form_valid(form)
        messages.success(
            self.request,
            "Your password was changed. Other browsers were signed out, and your API keys were"
            " revoked.",
        )
        return changed


def _page(
    request: HttpRequest, form: KeyForm | None = None, *, status: int = 200, **new: object
) -> HttpResponse:
    user_id = caller(request).pk
    context = {
        "keys": listed_keys(user_id),
        "form": form or KeyForm(user_id=user_id),
        "kept_choices": GRACE_PERIODS,
        **new,
    }
    return render(request, "sessions_app/account.html", context, status=status)
