"""The right to act as another person: set their password, create or see one of their keys.

The holder of a person's secret has the rights of that person, reads their private chats and spends
their money.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib.auth.models import Permission, User
from django.db.models import Q

if TYPE_CHECKING:
    from django.db.models import QuerySet

SEES_CONTENT: Final = "chat_app.view_content"


def rights_of(user: User) -> QuerySet[Permission]:
    """Return the rights of a person, whether or not the account is active."""
    return Permission.objects.filter(Q(user=user.pk) | Q(group__user=user.pk)).distinct()


def has_all(user: User, rights: QuerySet[Permission]) -> bool:
    """Return whether a person has all of these rights."""
    return not rights.exclude(pk__in=rights_of(user).values("pk")).exists()


def may_change(operator: User, person: User) -> bool:
    """Return whether an operator has every right of a person, and may change their account."""
    if operator.is_superuser or operator.pk == person.pk:
        return True
    return not person.is_superuser and has_all(operator, rights_of(person))


def may_act_as(operator: User, person: User) -> bool:
    """Return whether an operator may get a secret of a person.

    They need every right of that person, and the right to see what was said in chats.
    """
    if operator.pk == person.pk:
        return True
    return operator.has_perm(SEES_CONTENT) and may_change(operator, person)
