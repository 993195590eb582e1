"""The admin as one site: its home, its lists in sections, and one search for everything."""

from __future__ import annotations

from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.contrib import messages
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.apps import AdminConfig
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from django.http import HttpRequest, HttpResponse

# The lists by subject; those without a section are internals and shown last.
SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Chats": (
        "chat_app.chat", "chat_app.message", "chat_app.participant", "chat_app.content",
        "chat_app.voicecall", "chat_app.sharelink", "chat_app.invitelink", "chat_app.chatorigin",
        "chat_app.transcript", "chat_app.repeatedrequest",
    ),
    "Answers": (
        "sessions_app.response", "sessions_app.toolcall", "sessions_app.session",
        "sessions_app.queuedturn", "sessions_app.webhook", "sessions_app.webhookdelivery",
    ),
    "Money": (
        "sessions_app.paymentrequest", "payments_app.account", "payments_app.transfer",
        "payments_app.entry", "payments_app.hold", "payments_app.topuprequest",
        "payments_app.adjustmentrequest", "payments_app.receipt", "payments_app.paymenttoken",
        "payments_app.spendinglimit", "payments_app.approval", "payments_app.ledgerstate",
    ),
    "Agents": ("agents_app.agent", "agents_app.toolsource"),
    "People": (
        "auth.user", "auth.group", "chat_app.profile", "sessions_app.apikey",
        "sessions_app.externalidentity", "chat_app.presence", "federation_app.peer",
    ),
    "Audit": (
        "audit_app.auditrecord", "signing_app.publishedkey", "chat_app.treecheckpoint",
        "axes.accessattempt", "axes.accesslog", "axes.accessfailurelog",
    ),
    "Server": ("chat_app.site",),
}  # fmt: skip
INTERNALS: Final = "Internals"
NUL: Final = "\0"


class OperatorsAdminConfig(AdminConfig):
    """Makes this site the one on which all apps register their admin pages."""

    default_site = "uamp_project.operators_site.OperatorsSite"


class OperatorsSite(AdminSite):
    """The operators' home in place of Django's list of apps, with the menu at the top."""

    site_header = "UAMP administration"
    site_title = "UAMP"
    enable_nav_sidebar = False

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register admin pages, adding checks of their URLs, also to those of libraries."""
        from audit_app.admin.checked_lists import CheckedAdmin  # noqa: PLC0415 it needs the apps

        base = admin_class or ModelAdmin
        if not issubclass(base, CheckedAdmin):
            about = {"__module__": base.__module__, "__doc__": base.__doc__}
            base = type(base.__name__, (CheckedAdmin, base), about)
        super().register(model_or_iterable, base, **options)

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002 Django's API
        """Send staff without their second factor to its page.

        Also reject NUL in addresses and filters, which PostgreSQL accepts in no value. Async views
        check permissions themselves.
        """
        if iscoroutinefunction(view):
            return self._async_view(view)
        django_view: Callable[..., HttpResponse] = super().admin_view(view, cacheable)

        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if any(NUL in str(value) for value in (*args, *kwargs.values())):
                raise Http404
            if self.has_permission(request) and (way := _detour(request)) is not None:
                return way
            if "%00" not in request.META.get("QUERY_STRING", ""):
                try:
                    return django_view(request, *args, **kwargs)
                except PermissionDenied:
                    return self._forbidden(request)
            query = request.GET.copy()
            for name, values in request.GET.lists():
                query.setlist(name, [value for value in values if NUL not in name + value])
            messages.error(request, "A filter with an invalid character was ignored.")
            return HttpResponseRedirect(f"{request.path}?{query.urlencode()}")

        return checked

    def _forbidden(self, request: HttpRequest) -> HttpResponse:
        """Return the page of a refusal, which says who can grant the right."""
        if not self.has_permission(request):
            raise PermissionDenied
        context = {**self.each_context(request), "title": "Not allowed"}
        return TemplateResponse(request, "admin/403.html", context, status=HTTPStatus.FORBIDDEN)

    def _async_view(
        self, view: Callable[..., Awaitable[HttpResponse]]
    ) -> Callable[..., Awaitable[HttpResponse]]:
        def detour_for(request: HttpRequest) -> HttpResponse | None:
            return _detour(request) if self.has_permission(request) else None

        @wraps(view)
        async def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if any(NUL in str(value) for value in (*args, *kwargs.values())):
                raise Http404
            if (way := await sync_to_async(detour_for)(request)) is not None:
                return way
            try:
                return await view(request, *args, **kwargs)
            except PermissionDenied:
                return await sync_to_async(self._forbidden)(request)

        return checked

    def get_urls(self) -> list[Any]:
        """Add the search."""
        find = path("find/", self.admin_view(self.find), name="find")
        return [find, *super().get_urls()]

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show the home."""
        from sessions_app.admin.home import home_context  # noqa: PLC0415 it registers its pages

        context = {
            "home": home_context(request),
            "sections": self.sections(request),
            **(extra_context or {}),
        }
        return super().index(request, context)

    def app_index(
        self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show the lists of one app, in their sections."""
        context = {"sections": self.sections(request, app_label), **(extra_context or {})}
        return super().app_index(request, app_label, context)

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Sign out, and have the browser delete what it stores of the person."""
        from uamp_project.sign_in.views import without_stored_data  # noqa: PLC0415 it needs the apps

        return without_stored_data(super().logout(request, extra_context))

    def find(self, request: HttpRequest) -> HttpResponse:
        """Redirect to the row with an id or a name; list the matches unless there is just one."""
        from sessions_app.admin.finding import find_view  # noqa: PLC0415 it registers its pages

        return find_view(request, self)

    def sections(self, request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        """Return the lists that a person may open, of one app or of all.

        Sections are {name, models, is_internal}.
        """
        models = {
            f"{app['app_label']}.{model['object_name'].lower()}": model
            for app in self.get_app_list(request, app_label)
            for model in app["models"]
        }
        sections = [
            {
                "name": name,
                "models": [models.pop(label) for label in labels if label in models],
                "is_internal": False,
            }
            for name, labels in SECTIONS.items()
        ]
        rest = list(models.values())
        sections.append({"name": INTERNALS, "models": rest, "is_internal": True})
        return [section for section in sections if section["models"]]


def _detour(request: HttpRequest) -> HttpResponse | None:
    """Return the redirect of staff to the page of their second factor, if they have to pass it."""
    from agents_app.rest.views import caller  # noqa: PLC0415 it needs the apps
    from uamp_project.account_security.staff import detour  # noqa: PLC0415 as above

    return detour(request, caller(request))
