"""API keys in the admin, where operators create, rotate and revoke them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.template.response import TemplateResponse
from django.utils import timezone

from agents_app.rest.rights import EVERYTHING, SCOPES, Rights
from audit_app.admin.columns import linked, list_buttons, moment
from audit_app.admin.operations import Operation, OperationsAdmin
from audit_app.authority import may_act_as
from chat_app.admin.history_pages import HistoryAdmin
from payments_app.money import DEFAULT_ASSET, InvalidAmount, Money
from payments_app.spending.periods import PERIODS
from sessions_app.access import keys
from sessions_app.admin.operations import (
    REVOKE_KEY,
    ROTATE_KEY,
)
from sessions_app.models import (
    ApiKey,
)

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

    # Django's classes accept type arguments only in the stubs.
    _Form = forms.ModelForm[ApiKey]
else:
    _Form = forms.ModelForm


class ApiKeyForm(_Form):
    """A new key: its owner, purpose, rights, budget and expiry."""

    owner = forms.CharField(max_length=150, help_text="The name of the person.")
    scopes = forms.MultipleChoiceField(
        choices=SCOPES.items(),
        initial=list(SCOPES),
        widget=forms.CheckboxSelectMultiple(attrs={"class": "names"}),
        help_text="What the key may do, within the rights of its owner.",
    )
    budget = forms.CharField(
        max_length=30,
        required=False,
        label=f"Budget in {DEFAULT_ASSET}",
        help_text="The most that the key may spend. Leave empty for no budget.",
    )
    period = forms.ChoiceField(
        choices=[(period, f"per {period}") for period in PERIODS],
        initial="month",
        label="Period of the budget",
    )
    operator: User | None = None

    class Meta:
        """The secret part is generated, not entered."""

        model = ApiKey
        fields: ClassVar = ["name", "expires_at"]

    def clean_owner(self) -> User:
        """Return the person; refuse one whom the operator may not act as."""
        name = self.cleaned_data["owner"]
        person = User.objects.filter(username=name, is_active=True).first()
        if person is None:
            raise forms.ValidationError(f"There is no active person {name}.")
        if self.operator is None or not may_act_as(self.operator, person):
            raise forms.ValidationError(
                f"{name} has rights that you do not have, or chats that you may not see, so you"
                " cannot create a key for them."
            )
        return person

    def clean_budget(self) -> Money | None:
        """Return the amount."""
        text = self.cleaned_data["budget"]
        try:
            return Money.parse(text) if text else None
        except InvalidAmount as error:
            raise forms.ValidationError(str(error)) from error

    def clean_expires_at(self) -> datetime | None:
        """Refuse a time that has passed."""
        at: datetime | None = self.cleaned_data["expires_at"]
        if at is not None and at <= timezone.now():
            raise forms.ValidationError("This time has passed.")
        return at


@admin.register(ApiKey)
class ApiKeyAdmin(OperationsAdmin, HistoryAdmin):
    """API keys: the prefix is always displayed, the secret only once after creation."""

    find_by = ("prefix__begins",)
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
        "prefix", "user", "name", "scope", "spending", "created_at", "used_at", "expires_at",
        "revoked_at",
    )  # fmt: skip
    readonly_fields = ("scope", "spending")
    operations = (ROTATE_KEY, REVOKE_KEY)

    def row_links(self, request: HttpRequest, row: ApiKey) -> list[dict[str, str]]:
        """Return a link to the sessions that it opened."""
        return list_buttons(request, ("sessions_app.session", "Sessions", {"q": row.prefix}))

    @admin.display(description="may do")
    def scope(self, key: ApiKey) -> str:
        """Return its scopes, and the chats, agents and protocols that it is limited to."""
        parts = ["everything" if EVERYTHING in key.scopes else ", ".join(sorted(key.scopes))]
        for name in ("chats", "agents", "protocols"):
            only = getattr(key, name)
            if only is not None:
                parts.append(f"only {name}: {', '.join(only)}")
        return "; ".join(parts)

    @admin.display(description="budget")
    def spending(self, key: ApiKey) -> str:
        """Return its budget, and how much of it was spent in the current period."""
        state = keys.budgets_of([key]).get(key.pk)
        if state is None:
            return "none"
        budget, used = state.limit.amount, state.spent + state.held
        return f"{budget} {budget.asset} per {state.limit.period}, {used} spent or held"

    def may_operate(self, request: HttpRequest, operation: Operation, row: Any) -> bool:
        """Show a new secret only to operators who may act as the owner."""
        operator: Any = request.user
        may = super().may_operate(request, operation, row)
        return may and (operation is not ROTATE_KEY or may_act_as(operator, row.user))

    def get_form(
        self,
        request: HttpRequest,
        obj: Any = None,
        change: bool = False,  # noqa: FBT001, FBT002 part of the interface
        **kwargs: Any,
    ) -> Any:
        """Return the form, which checks the operator's rights."""
        form = super().get_form(request, obj, change, **kwargs)
        return type("ApiKeyForm", (form,), {"operator": request.user})

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """For a new key, ask for what a person decides."""
        if obj is not None:
            return super().get_fieldsets(request, obj)
        return [(None, {"fields": ["owner", "name", "scopes", "budget", "period", "expires_at"]})]

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        """Return whether a person may create keys."""
        return request.user.has_perm("sessions_app.add_apikey")

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: Any) -> None:
        """Create the key through the service."""
        del change
        data, operator = form.cleaned_data, request.user
        if not isinstance(operator, User):
            raise PermissionDenied
        budget = data["budget"]
        every = set(data["scopes"]) == set(SCOPES)
        new = keys.KeyRequest(
            name=data["name"],
            rights=Rights(scopes=frozenset({EVERYTHING} if every else data["scopes"])),
            expires_at=data["expires_at"],
            budget=None if budget is None else keys.KeyBudget(amount=budget, period=data["period"]),
        )
        address = str(request.META.get("REMOTE_ADDR", ""))
        try:
            made = keys.make_key_for(data["owner"], new, by=operator, address=address)
        except keys.MayNotActAs as error:
            raise PermissionDenied from error
        obj.pk = made.key.pk
        obj.refresh_from_db()
        obj.secret = made.secret  # type: ignore[attr-defined] # for response_add, which displays it

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
        operation: Operation,
        row: Any,
        data: dict[str, Any],
        done: str,
    ) -> HttpResponseBase:
        """Display the new secret of a rotated key, once."""
        if "secret" not in data:
            return super().finish_operation(request, operation, row, data, done)
        return self._secret_page(request, row, data["secret"], "The new secret")

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
