"""The setup page, which does not exist without its token, and the pages that follow it.

One offers an invitation, the other connects a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from agents_app.providers.local_servers import find_servers
from agents_app.providers.model_choice import NoModelError
from agents_app.rest.views import caller
from chat_app.links.invite_links import create_invite_link
from chat_app.members.link_validity import TooManyLinks
from chat_app.members.membership import NotAMember
from chat_app.members.rights import NotAllowed
from sessions_app.rest.access.account import counted
from uamp_project.account_security.staff import detour
from uamp_project.first_start.forms import ModelForm, SetupForm
from uamp_project.first_start.models import assistant, choices
from uamp_project.first_start.operator import AccountExists, connect, make_operator
from uamp_project.first_start.token import is_token

if TYPE_CHECKING:
    from django.http import HttpRequest

_BACKEND = "django.contrib.auth.backends.ModelBackend"


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def setup(request: HttpRequest) -> HttpResponse:
    """Show the form, or create the first account and open its chat."""
    data = request.POST if request.method == "POST" else request.GET
    if not is_token(data.get("token", "")):
        raise Http404
    servers = find_servers()
    ways = choices(servers)
    form = SetupForm(ways, request.POST if request.method == "POST" else None)
    if form.is_valid():
        values = form.cleaned_data
        try:
            fields = assistant(values["model"], values["key"], servers)
            user, chat_id = make_operator(
                values["username"],
                values["password"],
                site=values["site_name"],
                assistant=fields,
                title=_("Welcome"),
            )
        except NoModelError as error:
            form.add_error("key" if values["key"] else "model", str(error))
        except AccountExists:
            return redirect("login")
        except ValidationError as error:
            form.add_error("model", " ".join(error.messages))
        else:
            login(request, user, backend=_BACKEND)
            return redirect("first_invitation", chat_id)
    context = {"form": form, "ways": ways, "token": data["token"]}
    return render(request, "registration/setup.html", context, status=400 if form.errors else 200)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@counted
def first_invitation(request: HttpRequest, chat_id: str) -> HttpResponse:
    """Offer an administrator a link that invites people to the first chat; show it once made."""
    user = caller(request)
    if not user.is_superuser:
        raise PermissionDenied
    context: dict[str, Any] = {"chat_id": chat_id, "makes_accounts": _visitors_make_accounts()}
    if request.method == "POST":
        try:
            link, secret = create_invite_link(chat_id=chat_id, made_by=user)
        except (NotAMember, NotAllowed) as error:
            raise Http404 from error
        except TooManyLinks:
            context["is_full"] = True
        else:
            context["address"] = request.build_absolute_uri(
                reverse("sessions_app:join", args=[secret])
            )
            context["until"] = link.expires_at
    return render(request, "registration/first_invitation.html", context)


def _visitors_make_accounts() -> bool:
    return bool(settings.UAMP_INVITED_ACCOUNTS and not settings.UAMP_OIDC_ISSUER)


@sensitive_post_parameters("key")
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def connect_model(request: HttpRequest) -> HttpResponse:
    """Let an administrator choose the assistant's model, then open the chats.

    Like the admin, it asks for their second factor.
    """
    user = caller(request)
    if not user.is_superuser:
        raise PermissionDenied
    if (way := detour(request, user)) is not None:
        return way
    servers = find_servers()
    ways = choices(servers)
    form = ModelForm(ways, request.POST if request.method == "POST" else None)
    if form.is_valid():
        values = form.cleaned_data
        try:
            connect(assistant(values["model"], values["key"], servers), user)
        except NoModelError as error:
            form.add_error("key" if values["key"] else "model", str(error))
        except ValidationError as error:
            form.add_error("model", " ".join(error.messages))
        else:
            return redirect("home")
    status = 400 if form.errors else 200
    return render(
        request, "registration/connect_model.html", {"form": form, "ways": ways}, status=status
    )
