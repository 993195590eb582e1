"""The client for programs without asyncio; it runs in the event loop of its own thread."""

from __future__ import annotations

import concurrent.futures
import contextlib
from typing import TYPE_CHECKING, Any, Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from uamp.client.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from uamp.client.chat import FileOrPath, OpenChat
    from uamp.client.client import ToolFunction
    from uamp.client.exports import ExportSummary
    from uamp.client.records import (
        AccountBalance,
        AgentListing,
        Caller,
        ChatSummary,
        StoredContent,
        StoredMessage,
    )
    from uamp.client.state.answers import AgentAnswer, Piece
    from uamp.client.turn import AskedTurn
    from uamp.events import ChatMessage
    from uamp.events.base import Event

T = TypeVar("T")


class EventLoopThread:
    """Runs coroutines in the event loop of the client's thread; Ctrl-C cancels the running one."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal

    def run(self, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Run a coroutine function and return its result."""
        future = self._portal.start_task_soon(function, *arguments)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            with contextlib.suppress(concurrent.futures.CancelledError, Exception):
                future.result(timeout=2)
            raise

    def items(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an asynchronous iterator."""
        try:
            while True:
                try:
                    yield self.run(source.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                self.run(close)


class SyncTurn:
    """A turn: iterate over its pieces, or call ``answer`` for the whole, as with ``AskedTurn``."""

    def __init__(self, loop: EventLoopThread, turn: AskedTurn) -> None:
        self._loop = loop
        self._turn = turn

    def __iter__(self) -> Iterator[Piece]:
        return self._loop.items(aiter(self._turn))

    @property
    def message(self) -> ChatMessage | None:
        """The message as stored in the chat; None until then."""
        return self._turn.message

    @property
    def answers(self) -> list[AgentAnswer]:
        """The answers so far, in their current state."""
        return self._turn.answers

    def answer(self) -> AgentAnswer:
        """Wait for all answers to end and return the first; NoAnswerError if there are none."""
        return self._loop.run(self._turn.answer)

    def cancel(self, seconds: float = 10.0) -> None:
        """Cancel the running answers and wait, at most ``seconds``, until they have ended."""
        self._loop.run(self._turn.cancel, seconds)


class SyncChat:
    """An open chat, as ``OpenChat``."""

    def __init__(self, loop: EventLoopThread, chat: OpenChat) -> None:
        self._loop = loop
        self._chat = chat

    @property
    def id(self) -> str:
        """The id of the chat."""
        return self._chat.id

    def ask(self, text: str, *, files: Sequence[FileOrPath] = (), **options: Any) -> SyncTurn:
        """Send a message and follow its answers; options as in ``OpenChat.ask``."""
        return SyncTurn(self._loop, self._chat.ask(text, files=files, **options))

    def send(
        self, text: str, *, files: Sequence[FileOrPath] = (), **options: Any
    ) -> ChatMessage | None:
        """Send a message and return it as stored, without waiting for answers."""

        async def work() -> ChatMessage | None:
            return await self._chat.send(text, files=files, **options)

        return self._loop.run(work)

    def events(self, *, seconds: float | None = None) -> Iterator[Event]:
        """Yield every event of the session from now on, as ``OpenChat.events``."""
        return self._loop.items(self._chat.events(seconds=seconds))

    def history(
        self, *, limit: int | None = None, newest_first: bool = False
    ) -> Iterator[StoredMessage]:
        """Yield the messages of the chat, oldest first unless ``newest_first``."""
        return self._loop.items(self._chat.history(limit=limit, newest_first=newest_first))

    def export(self, path: str | Path) -> ExportSummary:
        """Export the chat to an NDJSON file and check it."""
        return self._loop.run(self._chat.export, path)

    def close(self) -> None:
        """End the session; running answers continue on the server."""
        self._loop.run(self._chat.close)


class SyncClient:
    """A person's access to a server, for programs without asyncio; use it in ``with``.

    The arguments are those of ``Client``. Callbacks and async tools run in the client's thread,
    other tools in separate threads. Only one thread may call its methods at a time.
    """

    def __init__(self, url: str | None = None, **options: Any) -> None:
        self._client = Client(url, **options)
        self._opened = contextlib.ExitStack()
        portal = self._opened.enter_context(start_blocking_portal())
        self._loop = EventLoopThread(portal)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and end the thread. Running answers continue on the server."""
        with self._opened:
            self._loop.run(self._client.close)

    def chat(self, name_or_id: str, *, tools: Sequence[ToolFunction] = ()) -> SyncChat:
        """Open a chat by its title or id, as ``Client.chat``."""

        async def work() -> OpenChat:
            return await self._client.chat(name_or_id, tools=tools)

        return SyncChat(self._loop, self._loop.run(work))

    def agent(self, name: str, **options: Any) -> SyncChat:
        """Open a private conversation with an agent, as ``Client.agent``."""

        async def work() -> OpenChat:
            return await self._client.agent(name, **options)

        return SyncChat(self._loop, self._loop.run(work))

    def me(self) -> Caller:
        """Return the owner of this key."""
        return self._loop.run(self._client.me)

    def agents(self) -> list[AgentListing]:
        """Return the agents that the caller may use."""
        return self._loop.run(self._client.agents)

    def chats(self, *, kind: str = "group", limit: int | None = None) -> Iterator[ChatSummary]:
        """Yield the caller's chats, latest first; ``kind`` is group, session or all."""
        return self._loop.items(self._client.chats(kind=kind, limit=limit))

    def new_chat(
        self, title: str = "", *, users: Sequence[str] = (), agents: Sequence[str] = ()
    ) -> ChatSummary:
        """Create a chat with people and agents, given by name; the caller is a member."""

        async def work() -> ChatSummary:
            return await self._client.new_chat(title, users=users, agents=agents)

        return self._loop.run(work)

    def history(
        self, chat_id: str, *, limit: int | None = None, newest_first: bool = False
    ) -> Iterator[StoredMessage]:
        """Yield the messages of a chat, oldest first unless ``newest_first``."""
        source = self._client.history(chat_id, limit=limit, newest_first=newest_first)
        return self._loop.items(source)

    def search(self, query: str) -> list[StoredMessage]:
        """Return the messages that match all words and filters of a search, newest first."""
        return self._loop.run(self._client.search, query)

    def balance(self) -> AccountBalance:
        """Return the caller's balance for paying answers."""
        return self._loop.run(self._client.balance)

    def upload(self, path: str | Path) -> StoredContent:
        """Upload a file to the server."""
        return self._loop.run(self._client.upload, path)

    def download(self, content: str, path: str | Path) -> StoredContent:
        """Download a content, by id or URL, to a file, and verify its SHA-256."""
        return self._loop.run(self._client.download, content, path)

    def export(self, chat_id: str, path: str | Path) -> ExportSummary:
        """Export a chat to an NDJSON file and check it, as ``ServerApi.export``."""
        return self._loop.run(self._client.export, chat_id, path)
