"""Accounts that people make on the page of an invite link. Synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from agents_app.group_names import GROUP_NAMES
from audit_app.record import AuditAction, record
from chat_app.links.invite_links import join_by_link
from chat_app.people.names import mixes_scripts
from chat_app.people.profiles import is_taken

if TYPE_CHECKING:
    from typing import Any


class NameTaken(Exception):
    """Another account has the name."""


class AccountForm(forms.Form):
    """The name and the password of a new account."""

    TAKEN = _("This name is taken. Choose another one.")
    MIXED = _("Use letters from one script only, such as Latin or Cyrillic.")

    username = forms.CharField(max_length=150, validators=[User.username_validator])
    password = forms.CharField(max_length=4096, strip=False)

    def clean_username(self) -> str:
        """Refuse a name that a person, an agent or a mention of many has or seems to have."""
        name = User.normalize_username(str(self.cleaned_data["username"]))
        if mixes_scripts(name):
            raise ValidationError(self.MIXED)
        if name.casefold() in GROUP_NAMES or is_taken(name, User(username=name)):
            raise ValidationError(self.TAKEN)
        return name

    def clean(self) -> dict[str, Any]:
        """Check the password together with the name."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if {"username", "password"} <= values.keys():
            try:
                validate_password(values["password"], User(username=values["username"]))
            except ValidationError as error:
                self.add_error("password", error)
        return values


def join_with_new_account(secret: str, username: str, password: str) -> tuple[User, str] | None:
    """Create an account, add it to the chat of an invite link, and return it and the chat's id.

    Returns None, and creates no account, if the link is not active. Raises UsedUp and NameTaken.
    """
    hashed = make_password(password)
    try:
        with transaction.atomic():
            user = User.objects.create(username=username, password=hashed)
            chat_id = join_by_link(secret, user)
            if chat_id is None:
                transaction.set_rollback(True)
                return None
            detail = f"by an invite link of {chat_id}"
            record(user, AuditAction.PERSON_MADE, user, detail=detail)
    except IntegrityError as error:
        raise NameTaken from error
    return user, chat_id
