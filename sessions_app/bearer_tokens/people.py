"""The accounts of other issuers' subjects: one per (issuer, subject)."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from agents_app.group_names import GROUP_NAMES
from agents_app.selectors import agent_id_named
from audit_app.record import AuditAction, record
from chat_app.people.names import key_of, mixes_scripts
from chat_app.people.profiles import is_taken
from sessions_app.models import ExternalIdentity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_NAME: Final = re.compile(r"[^\w.@+-]+")
NAME_CHARS: Final = 40
NAME_TRIES: Final = 20


def identity_of(issuer: str, subject: str) -> ExternalIdentity | None:
    """Return a subject's identity with its person, who may be deactivated; None if unknown."""
    rows = ExternalIdentity.objects.select_related("user")
    return rows.filter(issuer=issuer, subject=subject).first()


def ended_identities(identity_ids: Iterable[int]) -> set[int]:
    """Return those of these identities that no longer belong to a person."""
    ids = set(identity_ids)
    if not ids:
        return ids
    return ids - set(ExternalIdentity.objects.filter(pk__in=ids).values_list("pk", flat=True))


def person_of(issuer: str, subject: str) -> User | None:
    """Return the person of a subject, even if deactivated; None if unknown."""
    row = identity_of(issuer, subject)
    return None if row is None else row.user


def make_person(issuer: str, subject: str, claims: Mapping[str, Any], *, name_claim: str) -> User:
    """Return the person of a subject, creating an account if there is none.

    An existing account with the same name is never taken over. If a person or an agent has the
    name, the new account gets another. New accounts have no password.
    """
    if (person := person_of(issuer, subject)) is not None:
        return person
    for name in _names(claims, name_claim):
        try:
            with transaction.atomic():
                user = User.objects.create_user(name)
                user.first_name = str(claims.get("given_name") or "")[:150]
                user.last_name = str(claims.get("family_name") or "")[:150]
                user.save(update_fields=["first_name", "last_name"])
                row = ExternalIdentity.objects.create(issuer=issuer, subject=subject, user=user)
                record(None, AuditAction.PERSON_MADE, user, detail=f"{row.issuer} {row.subject}")
        except IntegrityError:
            # The name is taken, or another process created the same person.
            if (person := person_of(issuer, subject)) is not None:
                return person
        else:
            return user
    raise RuntimeError(f"no name was free for {subject!r} of {issuer!r}")


def _names(claims: Mapping[str, Any], name_claim: str) -> Iterator[str]:
    claim = claims.get(name_claim)
    name = _NAME.sub("-", claim)[:NAME_CHARS].strip("-") if isinstance(claim, str) else ""
    if mixes_scripts(name):
        # It may look like another person's.
        name = ""
    if name and _is_free(name):
        yield name
    for _ in range(NAME_TRIES):
        yield f"{name or 'person'}-{secrets.token_hex(3)}"


def _is_free(name: str) -> bool:
    """Return whether no person or agent has a similar name, and the name does not mention many.

    Private agents count too: the name that the account gets instead does not tell whose it is.
    """
    if {name.casefold(), key_of(name)} & GROUP_NAMES or is_taken(name, User(username=name)):
        return False
    return agent_id_named(name) is None and agent_id_named(key_of(name)) is None
