"""The setup page, which does not exist without its token, and the page that connects a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from agents_app.providers.local_servers import find_servers
from agents_app.providers.model_choice import NoModelError
from agents_app.rest.views import caller
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
    """Show the form, or make the first account and open its chat."""
    given = request.POST if request.method == "POST" else request.GET
    if not is_token(given.get("token", "")):
        raise Http404
    servers = find_servers()
    ways = choices(servers)
    form = SetupForm(ways, request.POST if request.method == "POST" else None)
    if form.is_valid():
        values = form.cleaned_data
        try:
            fields = assistant(values["model"], values["key"], servers)
            user, chat_id = make_operator(
                values["username"], values["password"], assistant=fields, title=_("Welcome")
            )
        except NoModelError as error:
            form.add_error("key" if values["key"] else "model", str(error))
        except AccountExists:
            return redirect("login")
        except ValidationError as error:
            form.add_error("model", " ".join(error.messages))
        else:
            login(request, user, backend=_BACKEND)
            return redirect("chat", chat_id)
    context = {"form": form, "ways": ways, "token": given["token"]}
    return render(request, "registration/setup.html", context, status=400 if form.errors else 200)


@sensitive_post_parameters("key")
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def connect_model(request: HttpRequest) -> HttpResponse:
    """Let an administrator choose what answers for the assistant, and open the chats then."""
    user = caller(request)
    if not user.is_superuser:
        raise PermissionDenied
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
