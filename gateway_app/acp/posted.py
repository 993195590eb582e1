"""ACP requests posted over HTTP: their answers, and the turns of prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import uamp
from gateway_app.acp import methods, read, write
from uamp import events as ev

if TYPE_CHECKING:
    from gateway_app.acp.read import Rpc
    from gateway_app.backend.streamed_connection import PostedEvents


async def begin_prompt(posted: PostedEvents, connection_id: str, message: Rpc) -> None:
    """Begin the turn of a prompt, or pay for the waiting one; its end is the answer.

    Raises RpcError and RemoteProtocolError.
    """
    params = methods.params_of(message, read.PromptParams)
    session_id = params.session_id
    unpaid = await posted.unpaid(session_id)
    if params.token is not None and unpaid:
        response_id, answer_id = next(iter(unpaid.items()))
        await posted.answered_by(connection_id, answer_id)
        await posted.send(methods.payment_of(session_id, response_id, params.token))
        return
    if set(await posted.live_responses(session_id)) - set(unpaid.values()):
        raise read.RpcError(read.INVALID_REQUEST, "A prompt of this session is being answered.")
    inputs = read.inputs_of(params.prompt, session_id)
    response_id = await methods.begin(
        posted, session_id, inputs, uamp.ResponseCreate(), token=params.token
    )
    await posted.answered_by(connection_id, response_id)


async def answers_of(posted: PostedEvents, message: Rpc) -> list[dict[str, Any]]:
    """Return the messages that answer a request other than a prompt, the answer last.

    Raises RpcError and RemoteProtocolError.
    """
    updates: list[dict[str, Any]] = []
    match message.method:
        case "session/new":
            result = await methods.new_session(posted, message)
        case "session/list":
            result = await methods.list_sessions(posted, message)
        case "session/load":
            session_id = methods.params_of(message, read.SessionParams).session_id
            loaded = await posted.own_sessions(methods.EXTENSION).load(session_id)
            updates = methods.history_of(posted, session_id, loaded)
            # Clients open the stream of the session that an answer names.
            result = {"sessionId": session_id}
        case "session/resume":
            session_id = methods.params_of(message, read.SessionParams).session_id
            await posted.check_session(session_id)
            result = {"sessionId": session_id}
        case "session/close":
            await cancel(posted, message)
            session_id = methods.params_of(message, read.SessionParams).session_id
            await posted.send(ev.SessionEnd(session_id=session_id))
            result = {}
        case "tools/list":
            result = await methods.list_tools(posted, message)
        case "tools/call":
            result = await methods.call_tool(posted, message)
        case _:
            raise read.RpcError(read.METHOD_NOT_FOUND, f"Unknown method: {message.method!r}.")
    return [*updates, write.success(message.id, result)]


async def cancel(posted: PostedEvents, message: Rpc) -> None:
    """Cancel the running responses of a session, in whichever process they run."""
    session_id = methods.params_of(message, read.SessionParams).session_id
    for response_id in await posted.live_responses(session_id):
        await posted.send(ev.ResponseCancel(session_id=session_id, response_id=response_id))
