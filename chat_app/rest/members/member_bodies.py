"""Shared parts of the views of chats and members: chat JSON, look-ups by name, refusals."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.http import Http404
from rest_framework.exceptions import PermissionDenied
from rest_framework.serializers import ValidationError

from agents_app import selectors as agents
from agents_app.rest.views import caller, rights_of
from chat_app.members.agents.agent_settings import NoKeywords
from chat_app.members.avatars import InvalidAvatar
from chat_app.members.chats import NoSponsor
from chat_app.members.inviting import CannotInvite, people_here
from chat_app.members.membership import NotAMember
from chat_app.members.participants import LastOwner
from chat_app.members.rights import NotAllowed
from chat_app.rest import overview
from chat_app.rest.edge import chats_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rest_framework.request import Request


@contextmanager
def refused(*, person: str = "user") -> Iterator[None]:
    """Convert refusals to change something into 404, 403 or 400.

    `person` is the member of the body that names people.
    """
    try:
        yield
    except NotAMember as error:
        raise Http404 from error
    except NotAllowed as error:
        raise PermissionDenied(str(error)) from error
    except LastOwner as error:
        raise PermissionDenied(
            "A chat needs an owner: make another member an owner first."
        ) from error
    except NoSponsor as error:
        raise ValidationError(
            {"payer": "No agent of this chat has an owner who pays for its answers."}
        ) from error
    except InvalidAvatar as error:
        raise ValidationError({"avatar": str(error)}) from error
    except NoKeywords as error:
        raise ValidationError({"keywords": str(error)}) from error
    except CannotInvite as error:
        raise ValidationError({person: str(error)}) from error


def chat_data(request: Request, chat_id: str) -> dict[str, Any]:
    """Return a chat as the caller sees it; raises Http404 for strangers."""
    rows = list(chats_for(request, chat_id))
    if not rows:
        raise Http404
    return overview.chats_data(rows, caller(request).pk)[0]


def user_ids(usernames: list[str], pointer: str = "/users") -> list[int]:
    """Return the ids of active people; raises ValidationError that names the others."""
    ids = dict(people_here().filter(username__in=usernames).values_list("username", "pk"))
    missing = [name for name in usernames if name not in ids]
    if missing:
        raise _unknown(pointer, missing)
    return [ids[name] for name in usernames]


def agents_named(
    names: list[str], request: Request, pointer: str = "/agents"
) -> list[tuple[str, str]]:
    """Return ids and trigger rules of agents that the caller and the credential may use.

    Raises ValidationError that names the others.
    """
    user, rights = caller(request), rights_of(request)
    triggers: dict[str, str] = {}
    missing = []
    for name in names:
        spec = agents.get_agent(name, viewer=user)
        if spec is None or not rights.may_ask(spec.id):
            missing.append(name)
        else:
            triggers[spec.id] = spec.trigger
    if missing:
        raise _unknown(pointer, missing)
    return list(triggers.items())


def _unknown(pointer: str, names: list[str]) -> ValidationError:
    kind = "agent that you may use" if pointer.startswith("/agent") else "person"
    member = pointer.lstrip("/")
    return ValidationError({member: [f"There is no {kind} named {name!r}." for name in names]})
