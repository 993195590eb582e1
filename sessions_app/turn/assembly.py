"""Assembly of a turn from inputs and a `response.create`: its message and its overrides.

`assemble` stores nothing. `store_files` stores the media of the message and its history, once the
turn is admitted; the caller discards them if the turn is refused after all.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from django.utils import timezone

import uamp
from agents_app.providers.options import audio_formats
from agents_app.rest.rights import agent_restriction, chat_restriction
from chat_app.contents import references, storage
from chat_app.ids import new_hex
from chat_app.log import history
from chat_app.log.entries import NewMessage
from sessions_app import database
from sessions_app.billing.repeated_conversations import ReturnedCall, digest_of, returned_call
from sessions_app.inputs.media import run_with_media, store_history, store_media
from sessions_app.response.request import ResponseRequest
from sessions_app.turn.facts import TurnFacts, facts_of
from sessions_app.turn.options import check_options
from sessions_app.turn.recall import has_calls, recalled
from sessions_app.turn.request import TurnRequest, check_size
from sessions_app.turn.targets import agent_spec
from sessions_app.turn.versions import ReplacedAnswer, check_replaces
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.blank_text import is_blank
from uamp.conversation import says_something
from uamp.shared_state import VersionedState

if TYPE_CHECKING:
    from sessions_app.process.history import History
    from sessions_app.records import OpenSession


class AssembledTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The message of a turn and its responses' overrides of the session.

    `size` is the number of bytes stored as text, and `content_ids` are the contents that the chat
    may read from then on; both are known once the files are stored. `new_ids` are content ids
    generated here.
    """

    message: NewMessage | None
    overrides: ResponseRequest
    size: int
    facts: TurnFacts
    new_ids: Collection[str] = ()
    content_ids: Sequence[str] = ()
    replaced: ReplacedAnswer | None = None
    # The call of a client tool whose result this turn brings, without a message.
    returned: ReturnedCall | None = None
    # The chat's state that agents with a price are shown, and pay for (`holds.with_state`).
    shared_state: VersionedState | None = None


async def assemble(request: TurnRequest, cached_history: History) -> AssembledTurn:
    """Return the message and options of a turn; raises RemoteProtocolError."""
    session, create = request.session, request.create
    check_replaces(request)
    # A turn that cannot be is refused before anything is read, except for a replaced answer.
    facts = None if create.replaces is None else await facts_of(request, None, cached_history)
    new_ids: set[str] = set()
    assembled = uamp.assemble(request.inputs, new_id=partial(_new_content_id, new_ids))
    message, context = assembled.message, list(assembled.context)
    config = create.response or ev.ResponseConfig()
    check_options(session.config, config)
    if config.messages is not None:
        context = [*config.messages, *context]
    if message is None and context and context[-1].role == "user":
        message = context.pop()
    size = check_size(request.inputs, message)
    if session.is_shared and context:
        raise RemoteProtocolError(
            ErrorCode.FORBIDDEN_ROLE,
            "In a shared chat the conversation is the chat's own: send one user message.",
        )
    if message is not None:
        await _check_media(session, message)
    stateless = config.messages is not None or any(
        isinstance(event, ev.InputText) and event.messages is not None for event in request.inputs
    )
    if facts is None:
        facts = await facts_of(request, _text_of(request, message), cached_history)
    replaced, thread = facts.replaced, facts.thread
    spoken = [*context, message] if message else context
    conversation = _asked_conversation(request, config, spoken) if stateless else None
    if stateless and has_calls(context):
        context = await database.run(recalled, context, session.principal.key)
    overrides = msgspec.structs.replace(
        _overrides(request, config, context, stateless=stateless),
        replaces=None if replaced is None else replaced.first_id,
        thread=None if thread is None else thread.root_id,
        conversation="" if conversation is None else conversation[0],
        has_message=message is not None,
    )
    new = _new_message(request, message) if message else None
    if new is not None:
        new = msgspec.structs.replace(
            new,
            reply_to=facts.reply_to,
            quote=facts.quote,
            thread=overrides.thread,
            also_in_chat=thread is not None and thread.also_in_chat,
            mentions=facts.mentions,
            followers=facts.followers,
        )
    return AssembledTurn(
        message=new,
        overrides=overrides,
        size=size,
        facts=facts,
        new_ids=new_ids,
        replaced=replaced,
        returned=None if conversation is None else conversation[1],
    )


async def store_files(request: TurnRequest, turn: AssembledTurn) -> AssembledTurn:
    """Store the media of a turn and return it with references; raises RemoteProtocolError.

    In a history that the client sends, media that it sent before are not stored again. If this
    raises, nothing stays stored.
    """
    principal, chat_id = request.session.principal, request.session.chat_id
    message, overrides = turn.message, turn.overrides
    began = timezone.now()
    of_history: list[str] = []
    of_context = [
        item for earlier in overrides.context or () for item in earlier.content_items or ()
    ]
    if overrides.context and of_context:
        context, of_history = await run_with_media(
            of_context,
            principal.counted_as,
            partial(store_history, overrides.context, principal, chat_id=chat_id),
        )
        overrides = msgspec.structs.replace(overrides, context=tuple(context))
    if message is not None:
        items = message.content_items
        text_only = all(isinstance(item, uamp.TextContent) for item in items)
        if not text_only:
            reuse = overrides.context is not None
            store = partial(
                store_media, items, principal, chat_id=chat_id, new_ids=turn.new_ids, reuse=reuse
            )
            try:
                items = await run_with_media(items, principal.counted_as, store)
            except RemoteProtocolError:
                await database.run(storage.discard, of_history, since=began)
                raise
        if request.attachments:
            parts = items or (uamp.TextContent(text=message.content),)
            items, text_only = (*parts, *request.attachments), False
        message = msgspec.structs.replace(message, content_items=() if text_only else items)
    of_message = [] if message is None else references.content_ids(message.content_items)
    return msgspec.structs.replace(
        turn,
        message=message,
        overrides=overrides,
        size=turn.size + len(msgspec.json.encode(overrides)),
        content_ids=(*of_message, *of_history),
    )


def _asked_conversation(
    request: TurnRequest, config: ev.ResponseConfig, messages: Sequence[uamp.Message]
) -> tuple[str, ReturnedCall | None] | None:
    """Return the digest of a conversation as sent, and the call whose result ends it.

    None unless the response may end at its client's tools.
    """
    session = request.session.config
    if not _ends_at_tools(session, config):
        return None
    instructions = session.instructions if config.instructions is None else config.instructions
    return digest_of(instructions, messages), returned_call(
        instructions,
        messages,
        tools=config.tools,
        response_format=request.create.response_format,
    )


def _text_of(request: TurnRequest, message: uamp.Message | None) -> str | None:
    """Return the text of a turn's message; None without a message."""
    if message is None:
        return None
    if message.content is not None:
        return message.content
    return uamp.text_of((*(message.content_items or ()), *request.attachments))


def _overrides(
    request: TurnRequest,
    config: ev.ResponseConfig,
    context: Sequence[uamp.Message],
    *,
    stateless: bool,
) -> ResponseRequest:
    """Return the overrides of the session for the responses of a turn (UAMP §5.12)."""
    return ResponseRequest(
        instructions=config.instructions,
        tools=config.tools,
        modalities=config.modalities,
        voice=config.voice,
        output_audio_format=config.output_audio_format,
        response_format=request.create.response_format,
        model=config.model,
        **{name: getattr(config, name) for name in uamp.GenerationOptions.__struct_fields__},
        ends_at_tools=_ends_at_tools(request.session.config, config),
        context=tuple(context) if stateless else None,
        before=() if stateless else tuple(context),
        hops=request.hops,
        credential=request.session.principal.credential,
        actors=request.session.principal.actors,
        agents=agent_restriction(request.session.principal.rights),
        chats=chat_restriction(request.session.principal.rights),
        servers=request.session.principal.servers,
        payment_token=request.session.payment_token_id,
    )


async def _check_media(session: OpenSession, message: uamp.Message) -> None:
    """Raise for media that would reach the session's model only as a label.

    Shared chats are exempt, since people can play the media there, and so are scripts, which handle
    any input.
    """
    if session.agent_id is None or session.is_shared:
        return
    items = [
        item
        for item in message.content_items or ()
        if isinstance(item, uamp.AudioContent | uamp.VideoContent)
    ]
    spec = await agent_spec(session.agent_id) if items else None
    if spec is None or spec.provider == "scripted":
        return
    formats = audio_formats(spec.provider, spec.options)
    for item in items:
        is_sound = isinstance(item, uamp.AudioContent)
        if not is_sound or item.format not in formats or not _is_kept_here(item):
            raise RemoteProtocolError(
                ErrorCode.UNSUPPORTED_MODALITY,
                f"The model of {spec.name} does not accept this. See its capabilities.",
                details={"modality": "audio" if is_sound else "video"},
            )


def _is_kept_here(item: uamp.ContentItem) -> bool:
    medium = uamp.media_of(item)
    return not isinstance(medium, uamp.MediaUrl) or uamp.content_id_of(medium.url) is not None


def _ends_at_tools(session: uamp.SessionConfig, response: ev.ResponseConfig) -> bool:
    """Return whether a call to a client tool ends the response (ResponseConfig.client_tools).

    By default it does for clients that send their history in `response.messages`: they expect the
    call in `response.done`.
    """
    chosen = response.client_tools or session.extensions.get("client_tools")
    return chosen == "end" or (chosen is None and response.messages is not None)


def _new_content_id(new_ids: set[str]) -> str:
    content_id = str(uuid.uuid4())
    new_ids.add(content_id)
    return content_id


def _new_message(request: TurnRequest, message: uamp.Message) -> NewMessage:
    """Return the message of a turn, whose media are not stored yet."""
    items = message.content_items or ()
    principal = request.session.principal
    return NewMessage(
        id=f"msg_{new_hex()}",
        role="user",
        at=timezone.now(),
        name=principal.username,
        content=message.content if message.content is not None else uamp.text_of(items),
        content_items=items,
        sender_user_id=principal.user_id,
        client_event_id=request.create.event_id,
        transport=request.session.transport,
    )


async def check_content(request: TurnRequest) -> None:
    """Reject a turn with nothing to answer; raises RemoteProtocolError invalid_event.

    That is a turn whose texts are all blank. A turn without inputs or messages is valid if its chat
    has messages, or if instructions let the agent speak first.
    """
    create, session = request.create, request.session
    config = create.response or ev.ResponseConfig()
    if create.replaces is not None or request.attachments or any(map(_says, request.inputs)):
        return
    if any(map(says_something, config.messages or ())):
        return
    if not request.inputs:
        if not is_blank(config.instructions or session.config.instructions or ""):
            return
        last = await database.run(history.last_messages, session.chat_id, limit=1)
        if config.messages is None and last:
            return
    raise RemoteProtocolError(
        ErrorCode.INVALID_EVENT,
        "There is nothing to answer: send a message with text, or a file.",
        event_id=create.event_id,
    )


def _says(input_event: ev.InputEvent) -> bool:
    """Return whether an input has content; media always do."""
    if not isinstance(input_event, ev.InputText):
        return True
    return not is_blank(input_event.text) or any(map(says_something, input_event.messages or ()))
