"""Finds a daemon for a response of a connected agent (`agents_app.runtime.connected`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User

from agents_app.runtime.agent_run import AgentError
from agents_app.runtime.connected.daemons import starts_over
from sessions_app import database
from sessions_app.connected.turns import input_of
from sessions_app.store import responses
from uamp import ErrorCode

if TYPE_CHECKING:
    from agents_app.runtime.connected.daemons import DaemonAnswer
    from sessions_app.connected.directory import ConnectedAgents
    from sessions_app.response.context import RunContext
    from uamp.events import InputText


class ResponseDaemons:
    """Finds a daemon for one response and sends it the turn. Used only by the run's task."""

    def __init__(self, context: RunContext, connected: ConnectedAgents) -> None:
        self._context, self._connected = context, connected

    async def ask(self) -> DaemonAnswer:
        """Send the turn to the least busy daemon; raises DaemonElsewhere and AgentError.

        A response handed to this process for its daemon stays here while that daemon has capacity.
        If its agent does not start over, the response's row says so before the daemon gets the
        turn: a process that takes the response over asks again only if no daemon had it.
        """
        context = self._context
        while True:
            daemon = await self._connected.find(
                context.spec, stays=context.has_moved, avoids=context.avoids
            )
            event = await database.run(_turn, context, daemon.name, daemon.link.base_url)
            if not starts_over(context.spec):
                await self._withdraw_offer()
            # The socket may have closed while the contents were read.
            if daemon.has_room:
                return daemon.begin(context.response_id, event)

    async def _withdraw_offer(self) -> None:
        """Write that a daemon may have the question; raises AgentError if it must not be given."""
        context = self._context
        if not await database.run(
            responses.give_question, context.response_id, fence=context.fence
        ):
            raise AgentError(
                f"Another process continues the answer of {context.spec.name}.",
                code=ErrorCode.INTERNAL_ERROR,
            )


def _turn(context: RunContext, name: str, base_url: str) -> InputText:
    return input_of(
        context.spec,
        context.request,
        name=name,
        base_url=base_url,
        caller=_caller(context.user_id, context.spec.owner_id),
        chat_id=context.chat_id,
    )


def _caller(user_id: int | None, owner_id: int | None) -> dict[str, Any]:
    """Return the caller's identity as asserted by the server; visitors have no id."""
    tier = "owner" if user_id is not None and user_id == owner_id else "user"
    if user_id is None:
        return {"tier": tier}
    username = User.objects.values_list("username", flat=True).filter(pk=user_id).first()
    return {"user_id": str(user_id), "username": username or "", "tier": tier}
