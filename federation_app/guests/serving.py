"""Files that peers fetch: which peer may read which file, and for whom. Synchronous.

The home of a chat serves a file to a guest's server while the guest is a member and a message that
this server may read shows the file. The guest's server serves the files of messages that are not
delivered to the home yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from chat_app.contents.reading_rights import ContentNotFound, in_message
from chat_app.members.membership import is_member
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.guests import accounts
from federation_app.guests.contents import FileQuery
from federation_app.guests.shared_files import turn_of
from federation_app.models import ChatFollower, ChatMirror, Guest
from sessions_app.queue.files import files_of
from sessions_app.queue.rows import find_waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chat_app.contents.reading_rights import ContentRecord
    from federation_app.models import Peer


def read_query(members: Mapping[str, str]) -> FileQuery:
    """Return the request of a peer; raises EnvelopeError malformed."""
    try:
        return msgspec.convert(dict(members), FileQuery)
    except msgspec.ValidationError as error:
        raise malformed(f"{error}.", detail="query") from None


def file_for(peer: Peer, file_id: str, query: FileQuery) -> ContentRecord:
    """Return a file that a peer may read now; raises EnvelopeError not_found.

    The same error for a file that does not exist, and for one that others may read.
    """
    accounts.host_of(peer)
    file = _waiting(peer, file_id, query) if query.ref else _shown(peer, file_id, query)
    if file is None:
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such file.", detail="file")
    return file


def _shown(peer: Peer, file_id: str, query: FileQuery) -> ContentRecord | None:
    """Return a file of a message here that the peer may know, for a guest who is in the chat."""
    guest = Guest.objects.filter(peer=peer, remote_id=query.by, user__is_active=True).values_list(
        "user_id", flat=True
    )
    follower = ChatFollower.objects.filter(peer=peer, chat_id=query.chat).first()
    user_id = guest.first()
    if follower is None or user_id is None or not is_member(query.chat, user_id):
        return None
    try:
        return in_message(file_id, query.chat, query.message, after=follower.first_seq)
    except ContentNotFound:
        return None


def _waiting(peer: Peer, file_id: str, query: FileQuery) -> ContentRecord | None:
    """Return a file of a message that a person here has sent to a chat of the peer."""
    mirror = ChatMirror.objects.filter(peer=peer, home_chat_id=query.chat).first()
    turn = turn_of(query.ref)
    row = None if mirror is None or turn is None else find_waiting(mirror.chat_id, turn)
    if row is None or not row.user.is_active or not is_member(row.chat_id, row.user_id):
        return None
    contents = [file.content for file in files_of(row)]
    return next((file for file in contents if str(file.pk) == file_id), None)
