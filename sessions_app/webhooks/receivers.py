"""The webhooks of a response: set, read and deleted by its client. Synchronous.

Callers have checked that the response is their client's.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from agents_app.outbound.rules import Unreachable, check_addresses, check_url, current_policy
from sessions_app.models import Response, Webhook
from sessions_app.webhooks.encryption import decrypted, encrypted
from sessions_app.webhooks.states import with_state
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.access.principal import Principal

PER_RESPONSE: Final = 10
_SECRETS: Final = ("token", "scheme", "credentials")


@dataclass(frozen=True, kw_only=True, slots=True)
class Receiver:
    """A receiver, and how it recognises the sender: by token or HTTP credentials."""

    name: str
    url: str
    token: str = field(default="", repr=False)
    scheme: str = ""
    credentials: str = field(default="", repr=False)


def check(url: str) -> None:
    """Raise RemoteProtocolError invalid_event for a forbidden address."""
    try:
        check_url(url, current_policy())
    except Unreachable:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            "The `url` of a receiver must be https, on port 443 or 8443 of a public host.",
        ) from None


def check_literal(url: str) -> None:
    """Raise like `check`, and also for a non-public IP address.

    Host names are resolved for each attempt.
    """
    check(url)
    try:
        target = check_url(url, current_policy())
        if _is_ip_address(target.host):
            check_addresses(target, [target.host])
    except Unreachable:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT, "The `url` of a receiver must not be in this network."
        ) from None


def server_of(url: str) -> str:
    """Return the scheme and the server of an address: the rest of it may be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@transaction.atomic
def set_receiver(
    response_id: str,
    receiver: Receiver,
    *,
    principal: Principal,
    webhook_format: str,
    origin: str,
    from_beginning: bool,
) -> None:
    """Set a webhook, replacing any of the same name.

    With `from_beginning`, the response's current state is sent as well, otherwise only later ones.
    Raises RemoteProtocolError invalid_event for a forbidden address or too many webhooks.
    """
    check(receiver.url)
    # Serialise concurrent requests that set webhooks of the same response.
    response = (
        Response.objects.select_for_update(no_key=True, of=("self",)).filter(pk=response_id).first()
    )
    if response is None:
        raise RemoteProtocolError(ErrorCode.UNKNOWN_SESSION, "There is no such response.")
    Webhook.objects.filter(response=response, name=receiver.name).delete()
    if Webhook.objects.filter(response=response).count() >= PER_RESPONSE:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT, f"A response may have at most {PER_RESPONSE} receivers."
        )
    is_live = from_beginning or response.finished_at is None
    secrets = {name: value for name in _SECRETS if (value := getattr(receiver, name))}
    row = Webhook.objects.create(
        response=response,
        name=receiver.name,
        user_id=principal.user_id,
        principal=principal.key,
        counted_as=principal.counted_as,
        format=webhook_format,
        origin=origin,
        url=receiver.url,
        secrets=encrypted(secrets),
        look_at=timezone.now() if is_live else None,
    )
    if not from_beginning:
        Webhook.objects.filter(pk=row.pk).update(
            seen=with_state(Webhook.objects.filter(pk=row.pk)).get().state
        )


def list_receivers(response_id: str) -> Sequence[Receiver]:
    """Return the receivers of a response, in the order in which they were set."""
    rows = Webhook.objects.filter(response_id=response_id).order_by("id")
    return [_receiver(row) for row in rows[:PER_RESPONSE]]


def find_receiver(response_id: str, name: str) -> Receiver | None:
    """Return the receiver with this name."""
    row = Webhook.objects.filter(response_id=response_id, name=name).first()
    return None if row is None else _receiver(row)


def delete_receiver(response_id: str, name: str) -> None:
    """Delete the receiver with this name, if any, and its unsent deliveries."""
    Webhook.objects.filter(response_id=response_id, name=name).delete()


def _receiver(row: Webhook) -> Receiver:
    return Receiver(name=row.name, url=row.url, **decrypted(row.secrets))
