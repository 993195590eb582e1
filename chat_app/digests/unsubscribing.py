"""The link that ends the emails of a person without signing in (RFC 8058).

Opening it only asks, since programs that scan mails open links; a POST ends the mails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.http import Http404
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from chat_app.people.settings import SettingsChange, update_settings

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_SALT: Final = "unread mails"
_TOKEN_CHARS: Final = 200


def unsubscribe_url(user_id: int) -> str:
    """Return the link of a person; it has no other right, and does not expire."""
    token = signing.dumps(user_id, salt=_SALT)
    path = reverse("chat_app:unsubscribe", args=[token])
    return settings.UAMP_ISSUER.rstrip("/") + path


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether to end the emails, or end them. The token proves who may, not a cookie."""
    if len(token) > _TOKEN_CHARS:
        raise Http404
    try:
        user_id = int(signing.loads(token, salt=_SALT))
    except (signing.BadSignature, TypeError, ValueError):
        raise Http404 from None
    if not User.objects.filter(pk=user_id, is_active=True).exists():
        raise Http404
    if request.method == "POST":
        update_settings(user_id=user_id, change=SettingsChange(mail_unread=False))
    return render(request, "chat_app/unsubscribe.html", {"is_done": request.method == "POST"})
