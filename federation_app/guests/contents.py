"""The contents of envelopes about shared chats (ADR 66), with the bounds of each member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec

from federation_app.envelope.errors import malformed
from federation_app.envelope.limits import load
from federation_app.envelope.members.body import decoded
from federation_app.guests.names import NAME_CHARS

if TYPE_CHECKING:
    from federation_app.envelope.members.reading import EnvelopeBody

GUESTS_TYPE: Final = "application/vnd.uamp.guests+json"
MAX_MEMBERS: Final = 1000
MAX_FILES: Final = 20
DESCRIPTION_CHARS: Final = 1000
_MAX_EMOJI: Final = 32
_MAX_PLACE: Final = 2**53 - 1

_Id = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,40}\Z")]
_Name = Annotated[str, msgspec.Meta(min_length=3, max_length=NAME_CHARS)]
_Uuid = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f-]{36}\Z")]
_Place = Annotated[int, msgspec.Meta(ge=0, le=_MAX_PLACE)]
_Emoji = Annotated[str, msgspec.Meta(min_length=1, max_length=_MAX_EMOJI)]
_Title = Annotated[str, msgspec.Meta(max_length=200)]


class RemotePerson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person as their server names them: an id that stays, and the full name."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
    name: _Name


class ChatInvitation(msgspec.Struct, frozen=True, kw_only=True):
    """`propose`: a person there invites one here (`to`) to a chat there."""

    invitation: _Uuid
    chat: _Id
    title: _Title
    by: RemotePerson
    to: _Name


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True):
    """`cancel` or `deny`: the invitation is withdrawn, or declined."""

    invitation: _Uuid


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """`confirm`: the invited person accepts."""

    invitation: _Uuid
    by: RemotePerson


class SharedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a message: its id on the server that has it, and what its bytes must be."""

    file: _Uuid
    name: Annotated[str, msgspec.Meta(max_length=255)]
    type: Annotated[str, msgspec.Meta(max_length=127)]
    size: Annotated[int, msgspec.Meta(ge=1, le=_MAX_PLACE)]
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    description: Annotated[str, msgspec.Meta(max_length=DESCRIPTION_CHARS)] = ""


_Files = Annotated[tuple[SharedFile, ...], msgspec.Meta(max_length=MAX_FILES)]


class GuestMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="message"):
    """A guest's message; `ref` names it, so that it is taken once."""

    chat: _Id
    by: RemotePerson
    ref: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
    text: str
    reply_to: _Id | None = None
    files: _Files = ()


class GuestEdit(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="edit"):
    """A new text of a guest's message."""

    chat: _Id
    by: RemotePerson
    message: _Id
    text: str


class GuestDeletion(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="delete"):
    """A guest deletes their message."""

    chat: _Id
    by: RemotePerson
    message: _Id


class GuestRead(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="read"):
    """A guest has read up to a message."""

    chat: _Id
    by: RemotePerson
    message: _Id


class GuestLeaving(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="leave"):
    """A guest leaves the chat."""

    chat: _Id
    by: RemotePerson


class PersonErasure(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="erase"):
    """A person of the sender was erased: their messages and their name leave this server, too."""

    by: RemotePerson


class TypingSign(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="typing"):
    """A person types, or has stopped. `chat` is the id at the home, from both sides."""

    chat: _Id
    by: RemotePerson
    is_typing: bool


class GuestReaction(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="react"):
    """A guest gives a message an emoji."""

    chat: _Id
    by: RemotePerson
    message: _Id
    emoji: _Emoji


class GuestReactionRemoval(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="unreact"
):
    """A guest takes an emoji back."""

    chat: _Id
    by: RemotePerson
    message: _Id
    emoji: _Emoji


class GuestPin(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="pin"):
    """A guest pins a message."""

    chat: _Id
    by: RemotePerson
    message: _Id


class GuestUnpin(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag="unpin"):
    """A guest unpins a message."""

    chat: _Id
    by: RemotePerson
    message: _Id


ActOnMessage = (
    GuestEdit
    | GuestDeletion
    | GuestRead
    | GuestReaction
    | GuestReactionRemoval
    | GuestPin
    | GuestUnpin
)
ActInOrder = ActOnMessage | GuestLeaving | PersonErasure
GuestAct = GuestMessage | ActInOrder | TypingSign


class ChatEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`notify`: the entry `seq` of a chat's log, which follows the entry `after` for the receiver.

    A log of another `epoch` has replaced the one before, from a backup: its places count again. The
    receiver may know the log after the entry `start`, where its first guest joined. `event` is
    the event of UAMP, `files` those of its message, `author` the person who caused it. `members`
    are the people of the chat now, and `only_owners_pin` is its rule now.
    """

    chat: _Id
    epoch: Annotated[str, msgspec.Meta(max_length=64)] = ""
    start: _Place
    after: _Place
    seq: _Place
    title: _Title
    only_owners_pin: bool = False
    members: Annotated[list[RemotePerson], msgspec.Meta(max_length=MAX_MEMBERS)]
    event: dict[str, Any]
    files: _Files = ()
    author: RemotePerson | None = None


class FileQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query of `GET /v1/files/{id}`: the chat at its home, and the message with the file.

    A guest's server names the `message`, and by its id the guest for whom it asks; the home of a
    chat names the waiting message by its `ref`.
    """

    chat: _Id
    message: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{0,40}\Z")] = ""
    by: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{0,64}\Z")] = ""
    ref: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{0,64}\Z")] = ""


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """`subscribe`: the log is sent again after a place."""

    chat: _Id
    after: _Place


_Content = TypeVar("_Content")


def read(body: EnvelopeBody, type_: type[_Content]) -> _Content:
    """Return the content of a body; raises EnvelopeError malformed."""
    try:
        return msgspec.convert(load(decoded(body)), type_)
    except msgspec.ValidationError as error:
        raise malformed(f"{error}.", detail="content") from None


def read_act(body: EnvelopeBody) -> GuestAct:
    """Return the action of a guest; raises EnvelopeError malformed."""
    try:
        act: GuestAct = msgspec.convert(load(decoded(body)), GuestAct)
    except msgspec.ValidationError as error:
        raise malformed(f"{error}.", detail="content") from None
    return act
