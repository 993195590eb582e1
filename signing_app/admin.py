"""The signing keys in the admin: shown without private halves, rotated and withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin

from audit_app.admin.columns import moment
from audit_app.admin.operations import Operation, OperationRefused, OperationsAdmin
from audit_app.admin.records import RecordAdmin
from audit_app.record import AuditAction
from signing_app import owner_keys
from signing_app.models import PublishedKey

if TYPE_CHECKING:
    from django.http import HttpRequest

RIGHT: Final = "signing_app.rotate_publishedkey"


def _rotate(key: PublishedKey, data: dict[str, Any], request: HttpRequest) -> str:
    del data, request
    is_announced = owner_keys.signs_from(key.owner) is not None
    if key.retired_at is not None or (is_announced and not owner_keys.unreadable_keys(key.owner)):
        return ""
    try:
        made = owner_keys.rotate(key.owner)
    except owner_keys.TooManyRotations:
        raise OperationRefused(
            "It was rotated too often. Wait until its oldest key has expired."
        ) from None
    start = owner_keys.signs_from(key.owner)
    since = "" if start is None else f" from {start:%Y-%m-%d %H:%M %Z}"
    return f"{key.owner} signs with {made.kid}{since}"


def _withdraw(key: PublishedKey, data: dict[str, Any], request: HttpRequest) -> str:
    del data, request
    return "it is no longer published" if owner_keys.withdraw(key.pk) else ""


ROTATE: Final = Operation(
    name="rotate",
    label="Rotate key",
    right=RIGHT,
    act=AuditAction.KEY_ROTATED,
    run=_rotate,
    facts=lambda key: (
        f"{key.owner} will get a new key. It signs from now on; a key that other servers pin is"
        f" published for a day first. What {key.pk} signed stays valid."
    ),
    is_available=lambda key: key.retired_at is None,
    in_list=True,
)

WITHDRAW: Final = Operation(
    name="withdraw",
    label="Withdraw key",
    right=RIGHT,
    act=AuditAction.KEY_REVOKED,
    run=_withdraw,
    facts=lambda key: (
        f"{key.pk} of {key.owner} will no longer be published: no one will be able to verify what"
        " it signed, and pages will show those answers as signed with an unknown key. Other"
        " processes may sign with it for another thirty seconds, with the same result."
    ),
    is_available=lambda key: key.withdrawn_at is None,
)


@admin.register(PublishedKey)
class PublishedKeyAdmin(RecordAdmin, OperationsAdmin):
    """The keys that sign, with their owners and times."""

    operations = (ROTATE, WITHDRAW)
    list_display = (
        "kid", "owner", "algorithm", moment("created_at"), moment("retired_at"),
        moment("vouches_until"), moment("withdrawn_at"),
    )  # fmt: skip
    ordering = ("-created_at", "kid")
    search_fields = ("kid__exact", "owner__exact")
    search_help_text = (
        "The id of a key, or its owner: agent:<id>, receipts, log, tree, shares, cards, federation"
        " or capabilities."
    )
    fields = (
        "kid", "owner", "algorithm", "jwk", "created_at", "retired_at", "vouches_until",
        "withdrawn_at",
    )  # fmt: skip
    readonly_fields = fields
