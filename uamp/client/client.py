"""The client of a server: a key, a connection that reconnects, and chats (docs/client.md)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import httpx2

from uamp.client.api import ServerApi, is_chat_id
from uamp.client.chat import OpenChat
from uamp.client.connection import ServerConnection, SessionHandle, TransportName, new_id, now_ms
from uamp.client.consent import Agree, Approve, Consent
from uamp.client.errors import ClientError, InvalidRequestError, TimedOutError
from uamp.client.rest import Rest
from uamp.client.spending import SpendingPlan
from uamp.client.state.session import ClientSession
from uamp.client.tools import ClientTool
from uamp.types.session import SessionConfig

if TYPE_CHECKING:
    from decimal import Decimal
    from types import TracebackType

DEFAULT_URL: Final = "http://127.0.0.1:8000"
ToolFunction = Callable[..., Any]


class Client(ServerApi):
    """A person's access to a server, for asyncio; use it in ``async with``.

    ``url`` and ``key`` default to the environment (UAMP_URL, UAMP_KEY); without a key the client is
    a visitor. It agrees to payments up to ``pay_up_to`` of ``currency`` over all answers and asks
    ``agree`` about those beyond; without both, a paid answer raises PaymentRequiredError.
    ``approve`` decides tool calls that need a person. ``transport`` is auto, websocket or sse.
    Every wait has a limit: ``timeout`` for a request and for opening a chat, ``answer_seconds``
    without news of an answer, ``reconnect_seconds`` without a connection.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        transport: TransportName = "auto",
        pay_up_to: str | Decimal | None = None,
        currency: str = "USD",
        agree: Agree | None = None,
        approve: Approve | None = None,
        timeout: float = 30.0,
        answer_seconds: float = 600.0,
        reconnect_seconds: float = 120.0,
    ) -> None:
        self.url = _address(url or os.environ.get("UAMP_URL") or DEFAULT_URL)
        key = os.environ.get("UAMP_KEY", "") if key is None else key
        self.answer_seconds = answer_seconds
        self._timeout = timeout
        self._consent = Consent(SpendingPlan(pay_up_to, currency), agree, approve)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=httpx2.Timeout(timeout, pool=None)
        )
        super().__init__(Rest(self._http))
        self._connection = ServerConnection(
            self._rest,
            headers=headers,
            transport=transport,
            connect_seconds=min(timeout, 10.0),
            reconnect_seconds=reconnect_seconds,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Running answers continue on the server."""
        await self._connection.close()
        await self._http.aclose()

    @property
    def transport(self) -> str:
        """The transport of the current connection: websocket or sse; empty if there is none."""
        return self._connection.transport_name

    async def chat(self, name_or_id: str, *, tools: Sequence[ToolFunction] = ()) -> OpenChat:
        """Open a chat by its title or id, to ask in it and watch it.

        ``tools`` are functions with annotations that its agents may call here. Raises NotFoundError
        and the other errors of ``uamp.client.errors``.
        """
        # An id saves a request that the key may not have the right to make.
        is_id = is_chat_id(name_or_id)
        chat_id = name_or_id if is_id else (await self.find_chat(name_or_id)).id
        return await self._open(chat=chat_id, tools=tools)

    async def agent(
        self,
        name: str,
        *,
        tools: Sequence[ToolFunction] = (),
        instructions: str | None = None,
        payment_token: str | None = None,
    ) -> OpenChat:
        """Open a private conversation with an agent.

        ``instructions`` are for its model; ``payment_token`` is a token of the server, which pays.
        """
        return await self._open(
            agent=name, tools=tools, instructions=instructions, payment_token=payment_token
        )

    async def _open(
        self,
        *,
        chat: str | None = None,
        agent: str | None = None,
        tools: Sequence[ToolFunction] = (),
        instructions: str | None = None,
        payment_token: str | None = None,
    ) -> OpenChat:
        functions = [ClientTool(function) for function in tools]
        config = SessionConfig(
            instructions=instructions, tools=tuple(tool.definition for tool in functions)
        )
        session = ClientSession(
            chat=chat,
            agent=agent,
            config=config,
            new_id=new_id,
            now=now_ms,
            payment_token=payment_token,
        )
        open_chat = OpenChat(
            self,
            self._connection,
            session,
            consent=self._consent,
            tools=functions,
            answer_seconds=self.answer_seconds,
        )
        handle = SessionHandle(session, open_chat.take_event, open_chat.take_request)
        open_chat.on_close = lambda: self._connection.remove(handle)
        self._connection.add(handle)
        try:
            async with asyncio.timeout(self._timeout):
                while not session.is_open:
                    if session.error is not None:
                        raise session.error
                    await self._connection.wait(self._timeout)
        except TimeoutError:
            self._connection.remove(handle)
            refusal = session.last_refusal
            raise refusal or TimedOutError("The server did not open the session in time.") from None
        except ClientError:
            self._connection.remove(handle)
            raise
        return open_chat


def _address(url: str) -> str:
    """Return the address of a server, including its scheme. Raises InvalidRequestError."""
    address = url if "://" in url else f"http://{url}"
    scheme = address.partition("://")[0]
    if scheme not in {"http", "https"}:
        raise InvalidRequestError(
            f"A server address must begin with http:// or https://, not {scheme}://.",
            code="invalid_address",
        )
    return address.rstrip("/")
