"""The second factor of staff, without which the admin stays closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

_FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def detour(request: HttpRequest, user: User) -> HttpResponse | None:
    """Return the redirect of staff whose session lacks the second factor; None if it has it.

    A session that began before its person added one lacks it, too. People without a password sign
    in with a provider, whose matter a second factor is.
    """
    if any(record["method"] == "mfa" for record in get_authentication_records(request, user)):
        return None
    types = set(
        Authenticator.objects.filter(user_id=user.pk, type__in=_FACTORS)
        .values_list("type", flat=True)
        .distinct()
    )
    if types:
        has_app = Authenticator.Type.TOTP in types
        page = reverse("mfa_reauthenticate" if has_app else "mfa_reauthenticate_webauthn")
        return redirect(f"{page}?{urlencode({'next': request.get_full_path()})}")
    if settings.UAMP_STAFF_SECOND_FACTOR and user.has_usable_password():
        messages.warning(request, _("The admin pages require a second factor. Add one here."))
        return redirect("mfa_index")
    return None
