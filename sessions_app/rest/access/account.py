"""The pages of a person's own account: the password, other browsers, and API keys for programs.

They are forms that work without scripts. Only a browser session opens them: an API key can neither
make keys nor change the password. Each form counts as a write of the person (`rates`).
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
from sessions_app.rest.access.key_forms import SECONDS_KEPT, KeyForm, RotationForm, shown_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

PAGE: Final = "sessions_app:account"
# The new key in the Django session, from the form until the page that shows it.
NEW_KEY: Final = "new_api_key"


class OwnPasswordForm(PasswordChangeForm):
    """Django's form, whose old password is tried as on the login page (docs/adr/0013).

    So wrong ones are counted, and an open browser is no way to guess without end.
    """

    def __init__(self, user: User, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self._request = request

    def clean_old_password(self) -> str:
        """Refuse a wrong password."""
        old: str = self.cleaned_data["old_password"]
        name = self.user.get_username()
        if authenticate(self._request, username=name, password=old) is None:
            raise forms.ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return old


class SignOutForm(OwnPasswordForm):
    """The password of a person who signs out their other browsers."""

    new_password1 = None  # type: ignore[assignment]  # Django takes a field out so
    new_password2 = None  # type: ignore[assignment]  # as above

    def clean(self) -> dict[str, Any]:
        """Compare no new passwords: there are none."""
        return self.cleaned_data


def counted(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Count a form as a write of the person who sends it; refuse one too many (429)."""

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
    # A HEAD request shows nothing, so the key stays for the page.
    new = request.session.pop(NEW_KEY, {}) if request.method == "GET" else {}
    return _page(request, **new)


@require_POST
@never_cache
@login_required
@counted
def make_key(request: HttpRequest) -> HttpResponse:
    """Make a key, and redirect to the page that shows its secret once.

    A page that is loaded again must not make another key. The secret stays in the Django session
    until the page takes it out.
    """
    user_id = caller(request).pk
    form = KeyForm(request.POST, user_id=user_id)
    if not form.is_valid():
        return _page(request, form, status=400)
    try:
        made = keys.make_key(user_id, form.wanted(), address=address_of(request))
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
    """Replace the secret of one of the person's own keys, and redirect as `make_key` does."""
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
    messages.success(request, "The key was revoked. What used it ends within five seconds.")
    return redirect(PAGE)


@require_POST
@never_cache
@login_required
@counted
def sign_out_others(request: HttpRequest) -> HttpResponse:
    """Sign the person out in all browsers but this one; their password stays, and so do their keys.

    Django's sessions hold a hash of the stored password. The same password with another salt is
    another one, so that all sessions end but the one that is given the new hash.
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
    """A new password. Other browsers and all API keys of the person end (`passwords`)."""

    form_class = OwnPasswordForm
    template_name = "sessions_app/password.html"
    success_url = reverse_lazy(PAGE)

    def get_form_kwargs(self) -> dict[str, Any]:
        """Hand the form its request."""
        return {**super().get_form_kwargs(), "request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        """Change it, and say what ended."""
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
    shown = {
        "keys": shown_keys(user_id),
        "form": form or KeyForm(user_id=user_id),
        "kept_choices": SECONDS_KEPT,
        **new,
    }
    return render(request, "sessions_app/account.html", shown, status=status)
