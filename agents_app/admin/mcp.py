"""Tool sources in the admin: add an MCP server, see its tools, refresh them.

Staff with write access here decide which programs run on this server, so stdio sources are reserved
for superusers. Stored values of `env` and `headers` are never shown again, and are not sent to a
changed address.
"""

import time
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents_app.admin.line_fields import LinesField, PairsField
from agents_app.mcp.listing import source_of, tools_of
from agents_app.mcp.places import (
    HIDDEN,
    SourceFailed,
    check_command,
    check_references,
    policy,
    redacted,
)
from agents_app.mcp.tools import refresh
from agents_app.models import Agent, ToolSource, ToolSourceTransport
from agents_app.outbound.rules import Unreachable, check_url
from audit_app.admin.records import AuditedAdmin
from audit_app.authority import may_act_as

if TYPE_CHECKING:
    # Django's classes are generic only in the stubs.
    _SourceForm = forms.ModelForm[ToolSource]
else:
    _SourceForm = forms.ModelForm

REFRESH_SECONDS = 60.0
"""The action starts no further refresh after this time."""
_STDIO = ToolSourceTransport.STDIO
_WHERE = ("transport", "url", "command", "args")
_READERS = (*_WHERE, "headers", "env")
"""The fields that decide who reads what the tools are called with, and in whose account."""


def _redacted_values(values: Any) -> dict[str, str]:
    return {str(name): redacted(str(value)) for name, value in dict(values).items()}


class SourceForm(_SourceForm):
    """Rejects settings that would fail when the source is used, and moves that others would notice.

    The admin sets `may_start` and `operator`.
    """

    may_start: ClassVar[bool] = False
    operator: ClassVar[User | AnonymousUser | None] = None
    args = LinesField(help_text="For stdio: the arguments of the program, one per line.")
    env = PairsField(
        separator="=",
        help_text="For stdio: environment variables, one NAME=value per line. ${MCP_…} is read from"
        " the environment of this server. Other values are stored and never shown again.",
    )
    headers = PairsField(
        separator=":",
        help_text="For HTTP: headers of each request, one per line, such as Authorization: Bearer"
        " ${MCP_TOKEN}. Values work as in the environment.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("env", "headers"):
            if name in self.initial:
                self.initial[name] = _redacted_values(self.initial[name])

    def clean_env(self) -> Any:
        """Reject values that cannot be in an environment."""
        return self._texts("env")

    def clean_headers(self) -> Any:
        """Reject values that cannot be in a header."""
        return self._texts("headers")

    def _texts(self, field: str) -> dict[str, str]:
        texts: dict[str, str] = self.cleaned_data[field]
        for name, value in texts.items():
            if "\0" in name + value or not (name + value).isascii():
                raise forms.ValidationError(f"{name!r} has a value that cannot be sent.")
            try:
                check_references(value)
            except SourceFailed as error:
                raise forms.ValidationError(str(error)) from error
        return texts

    def _put_back(self, values: dict[str, Any], field: str) -> None:
        """Restore hidden values from the row, unless they would go to another address."""
        stored: dict[str, str] = getattr(self.instance, field) if self.instance.pk else {}
        has_moved = any(values.get(part) != getattr(self.instance, part) for part in _WHERE)
        for name in [name for name, value in values[field].items() if value == HIDDEN]:
            if name not in stored:
                self.add_error(field, f"Enter the value of {name!r}.")
                return
            if has_moved:
                message = (
                    f"Enter the value of {name!r} again, since it would be sent to another address."
                )
                self.add_error(field, message)
                return
            values[field][name] = stored[name]

    def clean(self) -> dict[str, Any]:
        """Check that the source has an address or a program, and that it may be used."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        for field in {"env", "headers"} & set(values):
            self._put_back(values, field)
        if values.get("transport") == _STDIO:
            if not self.may_start:
                self.add_error("transport", "Only superusers may let this server start programs.")
            try:
                check_command(values.get("command", ""))
            except SourceFailed as error:
                self.add_error("command", str(error))
        else:
            try:
                check_url(values.get("url", ""), policy())
            except Unreachable as error:
                self.add_error("url", f"This address is not allowed: {error.reason}.")
        self._check_callers(values)
        return values

    def _check_callers(self, values: dict[str, Any]) -> None:
        """Refuse to move the tools that other people's agents call, with what they are called."""
        name, before = values.get("name"), self.instance
        readers = [values.get(part) for part in _READERS]
        if not name or [name, *readers] == [before.name, *(getattr(before, p) for p in _READERS)]:
            return
        operator = self.operator
        owners = User.objects.filter(pk__in=_owners_of_callers(name))
        if isinstance(operator, User) and all(may_act_as(operator, owner) for owner in owners):
            return
        if names := ", ".join(sorted(owner.get_username() for owner in owners)):
            changed = [field for field in _READERS if field in self.changed_data]
            self.add_error(
                next(iter(changed), "name"),
                f"Agents of {names} call tools of {name}. Only operators who may act as them decide"
                " where these lead.",
            )


def _owners_of_callers(source: str) -> set[int]:
    """Return the owners of agents with tools of a source."""
    owned = Agent.objects.filter(owner__isnull=False).exclude(tools=[])
    return {
        owner
        for owner, tools in owned.values_list("owner_id", "tools")
        if owner and any(source_of(tool) == source for tool in tools)
    }


@admin.register(ToolSource)
class ToolSourceAdmin(AuditedAdmin):
    """The list of sources, and one source with its tools."""

    form = SourceForm
    list_display = ("name", "transport", "place", "is_enabled", "tool_count", "refreshed_at", "ok")
    list_filter = ("is_enabled", "transport")
    search_fields = ("name", "url", "command")
    actions = ("refresh_tools",)
    readonly_fields = (
        "listed_tools", "server", "refreshed_at", "error", "created_at", "masked_env",
        "masked_headers",
    )  # fmt: skip

    def get_fieldsets(self, request: HttpRequest, obj: ToolSource | None = None) -> Any:
        """Return the fields; users who may not change secret values do not see them either."""
        env, headers = "env", "headers"
        if not (self.has_change_permission(request, obj) if obj else True):
            env, headers = "masked_env", "masked_headers"
        what = ["name", "is_enabled", "approval", "seconds", "transport"]
        state = ["server", "refreshed_at", "error", "listed_tools", "created_at"]
        return [
            (None, {"fields": what}),
            ("HTTP", {"fields": ["url", headers]}),
            ("stdio", {"fields": ["command", "args", env]}),
            ("Tools", {"fields": state}),
        ]

    def get_form(
        self, request: Any, obj: ToolSource | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Return a form that knows whether the user may start programs."""
        form = super().get_form(request, obj, *args, **kwargs)
        rights = {"may_start": request.user.is_superuser, "operator": request.user}
        return type("SourceForm", (form,), rights)

    def has_change_permission(self, request: HttpRequest, obj: ToolSource | None = None) -> bool:
        """Reserve programs for superusers."""
        return super().has_change_permission(request, obj) and _may(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: ToolSource | None = None) -> bool:
        """Reserve programs for superusers."""
        return super().has_delete_permission(request, obj) and _may(request, obj)

    def save_model(self, request: HttpRequest, obj: ToolSource, *args: Any) -> None:
        """Save the row; once it is committed, ask the source for its tools."""
        super().save_model(request, obj, *args)
        if obj.is_enabled:
            # After the commit: otherwise SQLite would block all writers while the server is asked.
            transaction.on_commit(partial(self._refresh, request, obj))

    def _refresh(self, request: HttpRequest, source: ToolSource) -> None:
        if refresh(source):
            message = f"{source.name} has {len(source.tools)} tools. {source.error}".strip()
            self.message_user(request, message, messages.SUCCESS)
        else:
            message = f"{source.name} did not list its tools: {source.error}"
            self.message_user(request, message, messages.WARNING)

    @admin.action(description="Refresh the tools of the selected sources", permissions=["change"])
    def refresh_tools(self, request: HttpRequest, queryset: QuerySet[ToolSource]) -> None:
        """Refresh one source after another until time runs out."""
        began = time.monotonic()
        for source in queryset:
            if not _may(request, source):
                message = f"{source.name} starts a program, which only superusers may do."
                self.message_user(request, message, messages.ERROR)
            elif time.monotonic() - began > REFRESH_SECONDS:
                self.message_user(request, f"{source.name} was not refreshed.", messages.WARNING)
            else:
                self._refresh(request, source)

    @admin.display(description="where")
    def place(self, source: ToolSource) -> str:
        """Return the address without its query, or the program."""
        return source.command if source.transport == _STDIO else source.url.partition("?")[0]

    @admin.display(description="tools")
    def tool_count(self, source: ToolSource) -> int:
        """Return the number of tools it listed."""
        return len(source.tools)

    @admin.display(boolean=True, description="answered")
    def ok(self, source: ToolSource) -> bool:
        """Return whether the last refresh succeeded."""
        return source.refreshed_at is not None and not source.error

    @admin.display(description="tools")
    def listed_tools(self, source: ToolSource) -> SafeString:
        """Return a table of the tools, by the names that agents use."""
        rows = (
            (tool.name, tool.description, "yes" if tool.needs_approval else "no")
            for tool in tools_of(source)
        )
        return format_html(
            "<table><tr><th>Name</th><th>Description</th><th>Needs approval</th></tr>{}</table>",
            format_html_join("", "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>", rows),
        )

    @admin.display(description="environment")
    def masked_env(self, source: ToolSource) -> str:
        """Return the environment without secrets."""
        return str(_redacted_values(source.env))

    @admin.display(description="headers")
    def masked_headers(self, source: ToolSource) -> str:
        """Return the headers without secrets."""
        return str(_redacted_values(source.headers))


def _may(request: HttpRequest, source: ToolSource | None) -> bool:
    return source is None or source.transport != _STDIO or bool(request.user.is_superuser)
