"""Why a member may not do something with a message."""

from __future__ import annotations


class MessageNotFound(LookupError):
    """No such message is in a chat of the person, or it was deleted: the answer is the same."""


class ThreadNested(Exception):
    """The message that a thread would begin with is in a thread itself."""


class NotTheAuthor(Exception):
    """The message is another member's."""


class RevisionConflict(Exception):
    """The message has another revision than the one that was changed."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"The message has revision {revision} by now. Edit that one.")


class TooManyRevisions(Exception):
    """The message was edited as often as is allowed."""


class NotAnEmoji(Exception):
    """A reaction is one emoji, and this is none."""


class TooManyReactions(Exception):
    """The member, or all of them, gave the message as many emoji as are allowed."""


class PinsAreTheOwners(Exception):
    """In this chat only owners pin messages."""


class TooManyPins(Exception):
    """The chat has as many pins as are allowed."""


class ChatWentOn(Exception):
    """A later question follows the answer that is to be made again."""

    def __init__(self) -> None:
        super().__init__("A later question follows this message.")


class EmptyMessage(Exception):
    """The message would have neither text nor a medium."""
