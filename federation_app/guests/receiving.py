"""Envelopes about shared chats, by their intent (ADR 66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.members.reading import Intent
from federation_app.guests import acts, contents, fetching, invitations, mirrors, typing_signs
from sessions_app import database

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from federation_app.envelope.members.reading import Envelope
    from federation_app.models import Peer

_CONTENTS: Final[dict[Intent, type[Any]]] = {
    Intent.PROPOSE: contents.ChatInvitation,
    Intent.CANCEL: contents.Withdrawal,
    Intent.CONFIRM: contents.Acceptance,
    Intent.DENY: contents.Withdrawal,
    Intent.NOTIFY: contents.ChatEntry,
    Intent.SUBSCRIBE: contents.Continuation,
}
_SERVICES: Final[dict[Intent, Callable[..., None]]] = {
    Intent.PROPOSE: invitations.receive,
    Intent.CANCEL: invitations.receive_withdrawal,
    Intent.CONFIRM: invitations.receive_acceptance,
    Intent.DENY: invitations.receive_decline,
    Intent.NOTIFY: mirrors.apply,
    Intent.SUBSCRIBE: acts.go_on,
}


async def take(peer: Peer, envelope: Envelope) -> None:
    """Carry out a verified envelope about a shared chat.

    Raises EnvelopeError, and RemoteProtocolError for a message that is refused.
    """
    if envelope.intent is Intent.INFORM:
        act = contents.read_act(envelope.body)
        if isinstance(act, contents.GuestMessage):
            await acts.say(peer, act)
        elif isinstance(act, contents.TypingSign):
            await typing_signs.show(peer, act)
        else:
            await database.run(acts.do, peer, act)
        return
    if envelope.intent not in _CONTENTS:
        raise EnvelopeError(
            EnvelopeCode.UNSUPPORTED, "The intent does not fit the content.", detail="intent"
        )
    content: Any = contents.read(envelope.body, _CONTENTS[envelope.intent])
    if isinstance(content, contents.ChatEntry) and content.files:
        await _apply_with_files(peer, content)
        return
    await database.run(_SERVICES[envelope.intent], peer, content)


async def _apply_with_files(peer: Peer, entry: contents.ChatEntry) -> None:
    """Apply an entry whose message has files, once they are here; raises EnvelopeError."""
    files: Sequence[Any] = ()
    if (place := await database.run(mirrors.query_of_files, peer, entry)) is not None:
        chat_id, query = place
        files = await fetching.fetch_files(peer, entry.files, query, chat_id=chat_id)
    await database.run(mirrors.apply, peer, entry, files)
