"""The groups of a provider as Django groups: the roles of operators.

UAMP_OIDC_GROUPS maps the provider's groups to roles. Each sign-in gives a person the roles of their
groups and removes those that they lost; operators manage other Django groups and superusers
themselves. The audit log records each change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction

from audit_app.record import AuditAction, record

if TYPE_CHECKING:
    from collections.abc import Mapping


def give_roles(user: User, claims: Mapping[str, Any], *, address: str) -> None:
    """Set a person's mapped groups and staff status according to the claims."""
    mapping: dict[str, str] = settings.UAMP_OIDC_GROUPS
    if not mapping:
        return
    listed = claims.get(settings.UAMP_OIDC_GROUPS_CLAIM)
    theirs = (
        {entry for entry in listed if isinstance(entry, str)} if isinstance(listed, list) else set()
    )
    group_names = {mapping[name] for name in theirs if name in mapping}
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        had = set(user.groups.filter(name__in=set(mapping.values())).values_list("name", flat=True))
        is_staff = user.is_superuser or bool(group_names)
        if group_names == had and is_staff == user.is_staff:
            return
        user.groups.add(*Group.objects.filter(name__in=group_names - had))
        user.groups.remove(*Group.objects.filter(name__in=had - group_names))
        user.is_staff = is_staff
        user.save(update_fields=["is_staff"])
        facts = [f"+{name}" for name in sorted(group_names - had)]
        facts += [f"-{name}" for name in sorted(had - group_names)]
        record(
            None,
            AuditAction.GROUPS_CHANGED,
            user,
            detail=f"{settings.UAMP_OIDC_ISSUER}: {' '.join(facts)}",
            address=address,
        )
