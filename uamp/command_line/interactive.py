"""`uamp chat`: read and write in a chat, in a terminal, until Ctrl-D."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout

from uamp.client.errors import ClientError
from uamp.command_line.completion import complete_agents, complete_chats
from uamp.command_line.following import print_happening
from uamp.command_line.options import (
    approval_question,
    client_of,
    paying_options,
    payment_question,
    runs,
    server_options,
)
from uamp.command_line.output import print_error, print_event, printable
from uamp.events import (
    MessageCreated,
    ResponseCancelled,
    ResponseCreated,
    ResponseDelta,
    ResponseDone,
    ResponseError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from uamp.client.chat import OpenChat
    from uamp.client.client import Client
    from uamp.events import PaymentRequired, ToolApprovalRequired
    from uamp.events.base import Event

HELP = """\
/members   who is in the chat
/cancel    stop the running answers (or Ctrl-C)
/quit      leave (or Ctrl-D)
Anything else is sent to the chat. Mention an agent to get an answer: @echo hello"""
_HISTORY = 10


@click.command
@click.argument("chat", required=False, shell_complete=complete_chats)
@click.option(
    "--agent", metavar="NAME", shell_complete=complete_agents, help="An agent to talk to privately."
)
@paying_options
@server_options
@runs
async def chat(
    chat: str | None,
    agent: str | None,
    pay_up_to: str | None,
    url: str | None,
    server: str | None,
    *,
    as_json: bool,
) -> None:
    """Talk in a CHAT, given by title or id, or privately with an --agent.

    Answers appear as they are written. You are asked about payments beyond --pay-up-to and about
    tool calls that need a person's approval. With --json, lines of standard input are messages, and
    events are printed.
    """
    if (chat is None) == (agent is None):
        raise click.UsageError("Specify either a chat or --agent.")
    terminal = ChatTerminal(as_json=as_json)
    async with client_of(
        url, server, pay_up_to=pay_up_to, agree=terminal.agree, approve=terminal.approve
    ) as client:
        conversation = await (client.chat(chat) if chat is not None else client.agent(str(agent)))
        await terminal.talk(client, conversation, is_private=agent is not None)


class ChatTerminal:
    """Reads lines and prints events; the next line answers a question."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._question: asyncio.Future[bool] | None = None
        self._asking = asyncio.Lock()
        self._running: dict[str, AnswerLines] = {}
        self._sent: set[asyncio.Task[None]] = set()

    async def talk(self, client: Client, chat: OpenChat, *, is_private: bool) -> None:
        """Talk until the input and the running answers have ended."""
        reading = asyncio.create_task(self._print_events(chat))
        try:
            if not self._as_json:
                await self._greet(client, chat, is_private=is_private)
            await self._read_lines(client, chat)
            if self._sent:
                await asyncio.wait(self._sent)
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

    async def agree(self, required: PaymentRequired) -> bool:
        """Ask whether to pay."""
        return await self._ask(payment_question(required))

    async def approve(self, call: ToolApprovalRequired) -> bool:
        """Ask whether an agent may call a tool."""
        return await self._ask(approval_question(call))

    async def _ask(self, question: str) -> bool:
        if self._as_json:
            return False
        async with self._asking:
            click.echo(click.style(f"{question} [y/N]", bold=True))
            self._question = asyncio.get_running_loop().create_future()
            try:
                return await self._question
            finally:
                self._question = None

    async def _greet(self, client: Client, chat: OpenChat, *, is_private: bool) -> None:
        if not is_private:
            for message in reversed(
                [message async for message in chat.history(limit=_HISTORY, newest_first=True)]
            ):
                click.echo(f"{printable(message.name)}  {printable(message.content)}")
            await self._members(client, chat)
        click.echo(click.style("/help lists the commands.", dim=True))

    async def _members(self, client: Client, chat: OpenChat) -> None:
        summary = await client.find_chat(chat.id)
        names = [
            f"@{member.name}" if member.kind == "agent" else member.name
            for member in summary.participants
        ]
        click.echo(
            click.style(f"In {printable(summary.title or summary.id)}: ", dim=True), nl=False
        )
        click.echo(printable(", ".join(names)))

    async def _read_lines(self, client: Client, chat: OpenChat) -> None:
        read_line = await self._line_reader()
        with patch_stdout(raw=True) if sys.stdin.isatty() else contextlib.nullcontext():
            while True:
                try:
                    line = await read_line()
                except EOFError:
                    return
                except KeyboardInterrupt:
                    await self._cancel(chat)
                    continue
                if await self._take_line(line, client, chat):
                    return

    async def _line_reader(self) -> Callable[[], Awaitable[str]]:
        if sys.stdin.isatty():
            prompt: PromptSession[str] = PromptSession()
            return lambda: prompt.prompt_async("> ")
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )

        async def read_line() -> str:
            line = await reader.readline()
            if not line:
                raise EOFError
            return line.decode(errors="replace").rstrip("\n")

        return read_line

    async def _take_line(self, line: str, client: Client, chat: OpenChat) -> bool:
        """Carry out a line; return whether it was the last."""
        word = line.strip()
        if self._question is not None and not self._question.done():
            self._question.set_result(word.lower() in {"y", "yes"})
        elif word == "/quit":
            return True
        elif word == "/help":
            click.echo(HELP)
        elif word == "/members":
            await self._members(client, chat)
        elif word == "/cancel":
            await self._cancel(chat)
        elif word:
            task = asyncio.create_task(self._send(line, chat))
            self._sent.add(task)
            task.add_done_callback(self._sent.discard)
        return False

    async def _send(self, line: str, chat: OpenChat) -> None:
        try:
            async for _ in chat.ask(line):
                pass
        except ClientError as error:
            if error.code != "cancelled":
                print_error(error, as_json=self._as_json)

    async def _cancel(self, chat: OpenChat) -> None:
        if not self._running:
            click.echo("No answer is running. /quit or Ctrl-D leaves.")
        for response_id in list(self._running):
            await chat.cancel(response_id)

    async def _print_events(self, chat: OpenChat) -> None:
        async for event in chat.events():
            if self._as_json:
                print_event(event)
            else:
                self._print(event)

    def _print(self, event: Event) -> None:
        match event:
            case ResponseCreated(response_id=response_id, agent=agent):
                self._running[response_id] = AnswerLines(agent or "agent")
            case ResponseDelta(response_id=str() as response_id) if response_id in self._running:
                self._running[response_id].add(event)
            case ResponseDone() | ResponseCancelled() | ResponseError():
                if (lines := self._running.pop(str(event.response_id), None)) is not None:
                    lines.end(event)
                print_happening(event)
            case MessageCreated(message=message) if message.role != "user":
                pass  # its text has been printed already
            case _:
                print_happening(event)


class AnswerLines:
    """Prints an answer line by line as it grows, since other answers may be printed in between."""

    def __init__(self, agent: str) -> None:
        self._head = click.style(f"@{printable(agent)}  ", bold=True)
        self._text = ""
        self._printed = 0

    def add(self, event: ResponseDelta) -> None:
        """Add a piece of text, by its offset."""
        if event.delta.type == "text":
            at = len(self._text) if event.offset is None else event.offset
            self._text = self._text[:at] + (event.delta.text or "")
            end = self._text.rfind("\n") + 1
            self._print(end)

    def end(self, event: Event) -> None:
        """Print the rest."""
        if isinstance(event, ResponseDone) and event.response is not None:
            output = event.response.output
            self._text = "".join(getattr(item, "text", "") for item in output) or self._text
        self._print(len(self._text))

    def _print(self, end: int) -> None:
        if end > self._printed:
            text = self._text[self._printed : end].rstrip("\n")
            click.echo(self._head + printable(text))
            self._head = ""
            self._printed = end
