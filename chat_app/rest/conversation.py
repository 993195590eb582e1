"""REST: one message, and what members do with it: edit it and delete it (docs/rest.md)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

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
from chat_app.conversation.revisions import edit_message, first_revision, texts_of
from chat_app.members.chat_lists import chats_of
from chat_app.models import Message, MessageRevision
from chat_app.rest.edge import RestView
from chat_app.rest.paging import SeqQuery, list_of, list_response, read_query, seq_page
from chat_app.rest.serializers import (
    MessageEditSerializer,
    MessageQuery,
    MessageSerializer,
    RevisionSerializer,
    message_data,
    revision_data,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rest_framework.request import Request


class MessageView(RestView):
    """One message."""

    @extend_schema(
        operation_id="get_message",
        parameters=[MessageQuery],
        responses={200: MessageSerializer, **responses(400, 404)},
    )
    def get(self, request: Request, message_id: str) -> Response:
        """Return a message of one of the caller's chats."""
        query = read_query(request, MessageQuery)
        message = message_for(request, message_id)
        html = query.get("render") == "html"
        return Response(message_data(message, html=html, reader=caller(request).pk))

    @extend_schema(
        operation_id="edit_message",
        request=MessageEditSerializer,
        responses={200: MessageSerializer, **responses(400, 403, 404, 409, 413, 415)},
    )
    def patch(self, request: Request, message_id: str) -> Response:
        """Change the text of the caller's own message; answers that it had stay as they are."""
        message = message_for(request, message_id)
        body = MessageEditSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        with _refusals():
            edit_message(
                chat_id=message.chat_id,
                message_id=message_id,
                user_id=caller(request).pk,
                **body.validated_data,
            )
        message.refresh_from_db()
        return Response(message_data(message, html=False, reader=caller(request).pk))

    @extend_schema(operation_id="delete_message", responses={204: None, **responses(403, 404)})
    def delete(self, request: Request, message_id: str) -> Response:
        """Delete the caller's own message, or as an owner of the chat any message."""
        message = message_for(request, message_id)
        with _refusals():
            delete_message(
                chat_id=message.chat_id, message_id=message_id, user_id=caller(request).pk
            )
        return Response(status=204)


class RevisionsView(RestView):
    """The texts that a message had."""

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


def message_for(request: Request, message_id: str) -> Message:
    """Return a message of one of the caller's chats; raises Http404."""
    rows = Message.objects.filter(pk=message_id, chat__in=chats_of(caller(request).pk))
    message = rows.first()
    if message is None:
        raise Http404
    return message


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise the problem of why a member may not do something with a message."""
    try:
        yield
    except errors.MessageNotFound as error:
        raise Http404 from error
    except errors.NotTheAuthor as error:
        raise PermissionDenied("The message is another member's.") from error
    except errors.RevisionConflict as error:
        raise Problem("message_conflict", str(error)) from error
    except errors.TooManyRevisions as error:
        raise Problem(
            "quota_exceeded", f"A message can be edited {settings.UAMP_MESSAGE_REVISIONS} times."
        ) from error
    except errors.EmptyMessage as error:
        raise ValidationError({"content": "A message has a text or a medium."}) from error
