"""The login page, for the chats and for the admin, and signing out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import views as auth
from django.urls import reverse
from django.utils.translation import gettext as _

from uamp_project.sign_in.entrance import enter

_Response = TypeVar("_Response", bound="HttpResponseBase")

if TYPE_CHECKING:
    from django.contrib.auth.forms import AuthenticationForm
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase


class LoginView(auth.LoginView):
    """The login page; a signed-in person is redirected to the chats."""

    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign the person in, after their second factor if they have one."""
        return enter(
            self.request, form.get_user(), method="password", to=str(self.get_success_url())
        )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the other ways in: a provider, a passkey, and an email for a new password."""
        label = settings.UAMP_OIDC_LABEL or _("Sign in with single sign-on")
        provider = label if settings.UAMP_OIDC_ISSUER else ""
        mails = settings.UAMP_MAIL != "off"
        return super().get_context_data(**kwargs, provider=provider, mails=mails)


class AdminLoginView(LoginView):
    """The login page of the admin, which people without a right to it see as well."""

    redirect_authenticated_user = False

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Explain the page to a signed-in person."""
        if request.user.is_authenticated and request.method == "GET":
            messages.error(
                request,
                _("Your account can't open the admin pages. Sign in with a different one."),
            )
        return super().dispatch(request, *args, **kwargs)

    def get_default_redirect_url(self) -> str:
        """Return the home of the admin."""
        return reverse("admin:index")


class LogoutView(auth.LogoutView):
    """Sign out, by POST only, and show the login page."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Have the browser delete all that it stores of the person, too."""
        return without_stored_data(super().post(request, *args, **kwargs))


def without_stored_data(response: _Response) -> _Response:
    """Return the response of a sign-out with the header that empties the browser's storage.

    Its cache has the files of chats.
    """
    response["Clear-Site-Data"] = '"cache", "storage"'
    return response
