"""The forms for API keys on the account page: a new key, and a new secret for a key."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents_app import selectors as agents
from agents_app.rest.rights import ALL, PROTOCOLS, SCOPES, Rights
from chat_app.members.chat_lists import chats_of
from payments_app.money import InvalidAmount, Money
from sessions_app.access import keys
from uamp.amounts import format_amount

if TYPE_CHECKING:
    from payments_app.spending.limits import LimitState
    from sessions_app.models import ApiKey

MAX_CHATS: Final = 50
"""How many of a person's shared chats are offered, by latest message."""
DAYS: Final = (
    (0, _("Never")),
    (7, _("In 7 days")),
    (30, _("In 30 days")),
    (90, _("In 90 days")),
    (365, _("In a year")),
)
PERIODS: Final = (("day", _("a day")), ("week", _("a week")), ("month", _("a month")))
GRACE_PERIODS: Final = (
    (0, _("Ends now")),
    (3600, _("Valid for another hour")),
    (86400, _("Valid for another day")),
    (604800, _("Valid for another 7 days")),
)


class KeyForm(forms.Form):
    """A request for a new key: its purpose and its rights."""

    name = forms.CharField(max_length=100)
    rights = forms.ChoiceField(choices=[("all", ""), ("some", "")], required=False)
    scopes = forms.MultipleChoiceField(choices=list(SCOPES.items()), required=False)
    protocols = forms.MultipleChoiceField(choices=list(PROTOCOLS.items()), required=False)
    chats = forms.MultipleChoiceField(required=False)
    agents = forms.MultipleChoiceField(required=False)
    days = forms.TypedChoiceField(choices=DAYS, coerce=int, required=False, empty_value=None)
    amount = forms.CharField(max_length=40, required=False)
    period = forms.ChoiceField(choices=PERIODS, required=False)

    def __init__(self, *args: Any, user_id: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choose("chats", _chats(user_id))
        self._choose("agents", [(spec.id, spec.name) for spec in agents.list_agents(user_id)])

    def _choose(self, name: str, choices: list[tuple[str, Any]]) -> None:
        field = self.fields[name]
        if not isinstance(field, forms.ChoiceField):
            raise TypeError(name)
        field.choices = choices

    def clean_amount(self) -> Money | None:
        """Return the budget; raises ValidationError."""
        if not (text := self.cleaned_data["amount"].strip()):
            return None
        try:
            # Many languages use a decimal comma.
            return Money.parse(text.replace(",", "."))
        except InvalidAmount as error:
            raise forms.ValidationError(_("Enter an amount such as 5 or 2.50.")) from error

    def key_request(self) -> keys.KeyRequest:
        """Return the key requested by a valid form."""
        data = self.cleaned_data
        is_narrow = data["rights"] == "some"
        rights = Rights(
            scopes=frozenset(data["scopes"]) if is_narrow else ALL.scopes,
            chats=_restriction(data["chats"]),
            agents=_restriction(data["agents"]),
            protocols=_restriction(data["protocols"]),
        )
        days, amount = data["days"], data["amount"]
        return keys.KeyRequest(
            name=data["name"],
            rights=rights,
            expires_at=timezone.now() + timedelta(days=days) if days else None,
            budget=None
            if amount is None
            else keys.KeyBudget(amount=amount, period=data["period"] or "month"),
        )


class RotationForm(forms.Form):
    """Rotation of a key's secret, and how long the previous one stays valid."""

    seconds = forms.TypedChoiceField(choices=GRACE_PERIODS, coerce=int)


class ListedKey:
    """A key as listed on the page."""

    def __init__(self, row: ApiKey, budget: LimitState | None, names: dict[str, str]) -> None:
        self.row = row
        self.scopes = [] if row.rights.scopes >= ALL.scopes else row.scopes
        self.protocols = [PROTOCOLS.get(name, name) for name in row.protocols or ()]
        self.agents = [names.get(pk, pk) for pk in row.agents or ()]
        self.chats = len(row.chats or ())
        self.budget = self.spent = self.period = ""
        if budget is not None:
            amount, used = budget.limit.amount, budget.spent + budget.held
            self.budget = format_amount(str(amount), amount.asset)
            self.spent = format_amount(str(used), used.asset)
            self.period = str(dict(PERIODS)[budget.limit.period])


def listed_keys(user_id: int) -> list[ListedKey]:
    """Return a person's valid keys, newest first."""
    rows = keys.keys_of(user_id)
    budgets = keys.budgets_of(rows)
    names = {}
    if any(row.agents for row in rows):
        names = {spec.id: spec.name for spec in agents.list_agents(user_id)}
    return [ListedKey(row, budgets.get(row.pk), names) for row in rows]


def _chats(user_id: int) -> list[tuple[str, Any]]:
    rows = chats_of(user_id).filter(kind="group").order_by("-latest_at")[:MAX_CHATS]
    return [(row.pk, row.title or _("(no title)")) for row in rows]


def _restriction(chosen: list[str]) -> frozenset[str] | None:
    return frozenset(chosen) or None
