"""API keys in the admin, where operators create, rotate and revoke them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.template.response import TemplateResponse

from audit_app.admin.columns import linked, list_buttons, moment
from audit_app.admin.operations import Operation, OperationsAdmin
from chat_app.admin.history_pages import HistoryAdmin
from sessions_app.admin.operations import (
    REVOKE_KEY,
    ROTATE_KEY,
)
from sessions_app.models import (
    ApiKey,
)

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

    # Django's classes accept type arguments only in the stubs.
    _Form = forms.ModelForm[ApiKey]
else:
    _Form = forms.ModelForm


class ApiKeyForm(_Form):
    """A new key: its owner, purpose and expiry."""

    class Meta:
        """The secret part is generated, not entered."""

        model = ApiKey
        fields: ClassVar = ["user", "name", "expires_at"]


@admin.register(ApiKey)
class ApiKeyAdmin(OperationsAdmin, HistoryAdmin):
    """API keys: the prefix is always displayed, the secret only once after creation."""

    find_by = ("prefix",)
    form = ApiKeyForm
    list_display = (
        "prefix", linked("user", "owner"), "name", moment("created_at"), moment("used_at"),
        moment("expires_at"),
        moment("revoked_at"),
    )  # fmt: skip
    list_filter = ("revoked_at", "expires_at", "used_at")
    list_select_related = ("user",)
    search_fields = ("prefix__exact", "user__username__exact")
    search_help_text = "The prefix, or the owner's name."
    fields = (
        "prefix", "user", "name", "created_at", "used_at", "expires_at", "revoked_at",
    )  # fmt: skip
    raw_id_fields = ("user",)
    operations = (ROTATE_KEY, REVOKE_KEY)

    def row_links(self, request: HttpRequest, row: ApiKey) -> list[dict[str, str]]:
        """Return a link to the sessions that it opened."""
        return list_buttons(request, ("sessions_app.session", "Sessions", {"q": row.prefix}))

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        """Return whether a person may create keys."""
        return request.user.has_perm("sessions_app.add_apikey")

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        """For a new key, ask only for what a person decides."""
        return super().get_fields(request, obj) if obj else ApiKeyForm.Meta.fields

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: Any) -> None:
        """Generate the secret and store its hash."""
        secret = ApiKey.make_secret()
        obj.prefix, obj.sha256 = ApiKey.split_secret(secret)
        super().save_model(request, obj, form, change)
        obj.secret = secret  # type: ignore[attr-defined] # for response_add, which displays it

    def response_add(
        self,
        request: HttpRequest,
        obj: Any,
        post_url_continue: str | None = None,  # noqa: ARG002 required by the interface
    ) -> HttpResponse:
        """Display the secret in the response itself; a message would store it in a cookie."""
        return self._secret_page(request, obj, obj.secret, "The new key")

    def finish_operation(
        self,
        request: HttpRequest,
        one: Operation,
        row: Any,
        wanted: dict[str, Any],
        done: str,
    ) -> HttpResponseBase:
        """Display the new secret of a rotated key, once."""
        if "secret" not in wanted:
            return super().finish_operation(request, one, row, wanted, done)
        self.conclude(request, one, row, wanted["reason"], done)
        return self._secret_page(request, row, wanted["secret"], "The new secret")

    def _secret_page(
        self, request: HttpRequest, key: ApiKey, secret: str, title: str
    ) -> HttpResponse:
        return TemplateResponse(
            request,
            "admin/sessions_app/apikey/created.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "original": key,
                "secret": secret,
                "title": title,
            },
        )
