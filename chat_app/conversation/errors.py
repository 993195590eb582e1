"""Reasons to refuse what a member does with a message."""

from __future__ import annotations


class MessageNotFound(LookupError):
    """The message is in no chat of the person, or was deleted: callers cannot tell which."""


class ThreadNested(Exception):
    """The message that would start a thread is in a thread itself."""


class NotTheAuthor(Exception):
    """The message belongs to another member."""


class RevisionConflict(Exception):
    """The edit was based on a revision that is no longer the latest."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"The message is at revision {revision} now. Edit that one.")


class TooManyRevisions(Exception):
    """The message was edited as often as allowed."""


class NotAnEmoji(Exception):
    """The reaction is not a single emoji."""


class TooManyReactions(Exception):
    """The message has as many emoji as one member, or all of them, may give it."""


class PinsAreTheOwners(Exception):
    """Only owners may pin messages in this chat."""

    def __init__(self) -> None:
        super().__init__("Only owners can pin messages in this chat.")


class TooManyPins(Exception):
    """The chat has as many pins as allowed."""


class ChatWentOn(Exception):
    """A later question follows the answer that should be regenerated."""

    def __init__(self) -> None:
        super().__init__("A later question follows this message.")


class EmptyMessage(Exception):
    """The message would have neither text nor media."""
