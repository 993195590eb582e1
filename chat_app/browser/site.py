"""The name that the operator gave this server, and the form field for it.

It appears in page titles, on the sign-in page, in emails and in authenticator apps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.db import DatabaseError
from django.utils.functional import SimpleLazyObject

from chat_app.models import SITE_NAME_CHARS, Site
from chat_app.people.names import clean_title

if TYPE_CHECKING:
    from django.http import HttpRequest

DEFAULT_NAME: Final = "UAMP"


class SiteNameField(forms.CharField):
    """A name on one line, without invisible characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": SITE_NAME_CHARS, **options})

    def to_python(self, value: Any) -> str:
        """Return the cleaned name."""
        return clean_title(super().to_python(value) or "")


def given_name() -> str:
    """Return the operator's name for the site, or ''. Synchronous."""
    return Site.objects.values_list("name", flat=True).first() or ""


def site_name() -> str:
    """Return the name of this server, also while the database cannot be reached. Synchronous."""
    try:
        return given_name() or DEFAULT_NAME
    except DatabaseError:
        return DEFAULT_NAME


def name_site(name: str) -> None:
    """Store the name. Synchronous."""
    Site.objects.update_or_create(pk=1, defaults={"name": name})


def site(_: HttpRequest) -> dict[str, object]:
    """Return `server_name` for templates, read on first use (a context processor)."""
    return {"server_name": SimpleLazyObject(site_name)}
