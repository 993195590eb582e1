"""REST: one message, and what members do with it: edit, delete, pin, react (docs/rest.md)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response
from rest_framework.serializers import ValidationError

from agents_app.rest.problems import Problem, responses
from agents_app.rest.views import caller
from chat_app.conversation import errors
from chat_app.conversation.deletion import delete_message
from chat_app.conversation.pins import pin_message, unpin_message
from chat_app.conversation.reactions import add_reaction, remove_reaction
from chat_app.conversation.revisions import edit_message, first_revision, texts_of
from chat_app.conversation.versions import versions_of
from chat_app.models import Message, MessageRevision, Pin, Reaction
from chat_app.rest.edge import RestView, check_match, check_member, visible_chats
from chat_app.rest.messages.message_filters import ExpandQuery, expand
from chat_app.rest.messages.message_serializers import (
    MessageEditSerializer,
    MessageSerializer,
    ReactionQuery,
    ReactorSerializer,
    RevisionSerializer,
    messages_data,
    reactor_data,
    revision_data,
)
from chat_app.rest.paging import (
    ListQuery,
    SeqQuery,
    list_of,
    list_response,
    read_query,
    seq_page,
    time_page,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rest_framework.request import Request


class MessageView(RestView):
    """One message."""

    read_scope = "chats:read"
    write_scope = "messages:write"
    takes_restricted_keys = True

    # The log keeps every revision, so edits count as stored text.
    methods_storing_text: ClassVar = ("PATCH",)

    @extend_schema(
        operation_id="get_message",
        parameters=[ExpandQuery],
        responses={200: MessageSerializer, **responses(400, 404)},
    )
    def get(self, request: Request, message_id: str) -> Response:
        """Return a message of one of the caller's chats, whether or not it was replaced."""
        query = read_query(request, ExpandQuery)
        message = message_for(request, message_id)
        html = query.get("render") == "html"
        reader = caller(request).pk
        data = messages_data([message], html=html, reader=reader)
        self.expand(data, query, reader)
        return Response(data[0])

    def expand(self, data: list[dict[str, Any]], query: dict[str, Any], reader: int) -> None:
        """Add the parts named by `expand` to messages."""
        expand(data, query, reader)

    @extend_schema(
        operation_id="edit_message",
        request=MessageEditSerializer,
        responses={200: MessageSerializer, **responses(400, 403, 404, 409, 412, 413, 415)},
    )
    def patch(self, request: Request, message_id: str) -> Response:
        """Change the text of the caller's own message; answers to it stay as they are."""
        message = message_for(request, message_id)
        body = MessageEditSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values = body.validated_data
        if "If-Match" in request.headers:
            # The edit applies to the revision behind the ETag, whatever is written in the meantime.
            data = messages_data([message], html=False, reader=caller(request).pk)
            check_match(request, Response(data[0]))
            values = {"revision": message.revision or 0, **values}
        with _refusals():
            edit_message(
                chat_id=message.chat_id,
                message_id=message_id,
                user_id=caller(request).pk,
                **values,
            )
        message.refresh_from_db()
        return Response(messages_data([message], html=False, reader=caller(request).pk)[0])

    @extend_schema(operation_id="delete_message", responses={204: None, **responses(403, 404)})
    def delete(self, request: Request, message_id: str) -> Response:
        """Delete the caller's own message, or, as an owner of the chat, any message."""
        message = message_for(request, message_id)
        with _refusals():
            delete_message(
                chat_id=message.chat_id, message_id=message_id, user_id=caller(request).pk
            )
        return Response(status=204)


class RevisionsView(RestView):
    """The revisions of a message."""

    read_scope = "chats:read"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="list_revisions",
        parameters=[SeqQuery],
        responses={200: list_of(RevisionSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, message_id: str) -> Response:
        """Return a page of revisions, oldest first unless `order=desc`."""
        query = read_query(request, SeqQuery)
        message = message_for(request, message_id)
        page = seq_page(MessageRevision.objects.filter(message=message), request, query)
        rows = [first_revision(message)] if message.revision is None else page.rows
        texts = texts_of(rows, message.chat_id)
        data = [revision_data(row, text) for row, text in zip(rows, texts, strict=True)]
        return list_response(request, data, next_cursor=page.next_cursor, key="revision")


class VersionsView(RestView):
    """The versions of an answer."""

    read_scope = "chats:read"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="list_versions",
        parameters=[SeqQuery],
        responses={200: list_of(MessageSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, message_id: str) -> Response:
        """Return a page of the versions of an answer, given any one of them."""
        query = read_query(request, SeqQuery)
        message = message_for(request, message_id)
        rows = versions_of(message.chat_id, message.version_of or message.pk)
        page = seq_page(rows, request, query)
        data = messages_data(page.rows, html=False, reader=caller(request).pk)
        return list_response(request, data, next_cursor=page.next_cursor)


class ReactionsView(RestView):
    """The reactions to a message."""

    read_scope = "chats:read"
    write_scope = "messages:write"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="list_reactions",
        parameters=[ListQuery],
        responses={200: list_of(ReactorSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, message_id: str) -> Response:
        """Return a page of reactions with their authors, the latest first."""
        query = read_query(request, ListQuery)
        message = message_for(request, message_id)
        rows = Reaction.objects.filter(message=message).select_related("user")
        page = time_page(rows, request, query, field="created_at")
        data = [reactor_data(row) for row in page.rows]
        return list_response(request, data, next_cursor=page.next_cursor)

    @extend_schema(
        operation_id="add_reaction",
        parameters=[ReactionQuery],
        request=None,
        responses={204: None, **responses(400, 403, 404, 413)},
    )
    def put(self, request: Request, message_id: str) -> Response:
        """Give a message the emoji in the query."""
        return self._change(request, message_id, add_reaction)

    @extend_schema(
        operation_id="remove_reaction",
        parameters=[ReactionQuery],
        responses={204: None, **responses(400, 403, 404)},
    )
    def delete(self, request: Request, message_id: str) -> Response:
        """Remove the caller's reaction with the emoji in the query."""
        return self._change(request, message_id, remove_reaction)

    @staticmethod
    def _change(request: Request, message_id: str, change: Callable[..., object]) -> Response:
        query = read_query(request, ReactionQuery)
        chat_id = message_for(request, message_id).chat_id
        with _refusals():
            change(chat_id=chat_id, message_id=message_id, user_id=caller(request).pk, **query)
        return Response(status=204)


class PinView(RestView):
    """Whether a message is pinned."""

    write_scope = "messages:write"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="pin_message", request=None, responses={204: None, **responses(403, 404, 413)}
    )
    def put(self, request: Request, message_id: str) -> Response:
        """Pin the message in its chat."""
        return self._change(request, message_id, pin_message)

    @extend_schema(operation_id="unpin_message", responses={204: None, **responses(403, 404)})
    def delete(self, request: Request, message_id: str) -> Response:
        """Unpin the message."""
        return self._change(request, message_id, unpin_message)

    @staticmethod
    def _change(request: Request, message_id: str, change: Callable[..., object]) -> Response:
        chat_id = message_for(request, message_id).chat_id
        with _refusals():
            change(chat_id=chat_id, message_id=message_id, user_id=caller(request).pk)
        return Response(status=204)


class PinsView(RestView):
    """The pinned messages of a chat."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="list_pins",
        parameters=[SeqQuery],
        responses={200: list_of(MessageSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return a page of pinned messages, in the order of pinning."""
        query = read_query(request, SeqQuery)
        check_member(request, chat_id)
        pins = Pin.objects.filter(chat_id=chat_id).select_related("message")
        page = seq_page(pins, request, query)
        pinned = [pin.message for pin in page.rows]
        data = messages_data(pinned, html=False, reader=caller(request).pk)
        return list_response(request, data, next_cursor=page.next_cursor)


def message_for(request: Request, message_id: str) -> Message:
    """Return a message of one of the caller's chats; raises Http404."""
    rows = Message.objects.filter(pk=message_id, chat__in=visible_chats(request))
    message = rows.first()
    if message is None:
        raise Http404
    return message


@contextmanager
def _refusals() -> Iterator[None]:
    """Convert refusals to act on a message into problems."""
    try:
        yield
    except errors.MessageNotFound as error:
        raise Http404 from error
    except errors.NotTheAuthor as error:
        raise PermissionDenied("The message belongs to another member.") from error
    except errors.RevisionConflict as error:
        raise Problem("message_conflict", str(error)) from error
    except errors.TooManyRevisions as error:
        raise Problem(
            "quota_exceeded",
            f"A message can be edited at most {settings.UAMP_MESSAGE_REVISIONS} times.",
        ) from error
    except errors.PinsAreTheOwners as error:
        raise PermissionDenied(str(error)) from error
    except errors.TooManyPins as error:
        raise Problem(
            "quota_exceeded", "The chat has the maximum number of pins. Unpin one first."
        ) from error
    except errors.TooManyReactions as error:
        raise Problem(
            "quota_exceeded", "The message has the maximum number of reactions."
        ) from error
    except errors.NotAnEmoji as error:
        raise Problem(
            "invalid",
            "A reaction must be one emoji.",
            errors=[{"parameter": "emoji", "detail": "Not an emoji."}],
        ) from error
    except errors.EmptyMessage as error:
        raise ValidationError({"content": "A message needs text or a file."}) from error
