"""Options shared by the commands, their client, and their exit codes."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.output import create_output

from uamp.client.client import Client
from uamp.client.errors import (
    AnswerCancelledError,
    AnswerFailedError,
    ClientError,
    ConnectionLostError,
    ExportCutError,
    NoAnswerError,
    NotFoundError,
    NotPermittedError,
    PaymentRefusedError,
    PaymentRequiredError,
    RateLimitError,
    TimedOutError,
    UnauthorizedError,
    UnavailableError,
)
from uamp.command_line import configuration
from uamp.command_line.output import print_error, printable

if TYPE_CHECKING:
    from uamp.events import PaymentRequired, ToolApprovalRequired

F = TypeVar("F", bound=Callable[..., Any])

EXIT_CODES: Final[list[tuple[int, tuple[type[ClientError], ...]]]] = [
    (3, (UnauthorizedError, NotPermittedError)),
    (4, (NotFoundError,)),
    (5, (PaymentRequiredError, PaymentRefusedError)),
    (6, (NoAnswerError, AnswerFailedError, AnswerCancelledError)),
    (7, (ConnectionLostError, TimedOutError, UnavailableError, RateLimitError)),
    (8, (ExportCutError,)),
]
"""The exit codes besides 0, 1 (any other error), 2 (wrong usage) and 130 (Ctrl-C)."""
INTERRUPTED: Final = 130


def exit_code(error: ClientError) -> int:
    """Return the exit code of an error."""
    return next((code for code, kinds in EXIT_CODES if isinstance(error, kinds)), 1)


def server_options(command: F) -> F:
    """Add the options of the server, and `--json`, to a command."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print lines of JSON."),
        click.option(
            "--server", metavar="NAME", help="The name of a server saved with `uamp keys add`."
        ),
        click.option("--url", metavar="URL", help="The address of the server."),
    ):
        command = option(command)
    return command


def paying_options(command: F) -> F:
    """Add the payment option to a command."""
    return click.option(
        "--pay-up-to",
        metavar="AMOUNT",
        help="Pay for answers up to this amount in USD without asking.",
    )(command)


def client_of(url: str | None, server: str | None, **options: Any) -> Client:
    """Return a client for the server that the options name."""
    chosen = configuration.choose(url=url, name=server)
    return Client(chosen.url, key=chosen.key, **options)


def asks_person(*, as_json: bool) -> bool:
    """Return whether there is a person at a terminal to ask."""
    return not as_json and sys.stdin.isatty()


async def agree(required: PaymentRequired) -> bool:
    """Ask the person at the terminal whether to pay."""
    return await confirm(payment_question(required))


async def approve(call: ToolApprovalRequired) -> bool:
    """Ask the person at the terminal whether an agent may call a tool."""
    return await confirm(approval_question(call))


def payment_question(required: PaymentRequired) -> str:
    """Return the question whether to pay."""
    requirements = required.requirements
    return printable(f"The answer costs {requirements.amount} {requirements.currency}. Pay?")


def approval_question(call: ToolApprovalRequired) -> str:
    """Return the question whether an agent may call a tool."""
    call_text = printable(f"{call.name} {call.arguments}")
    return f"{printable(call.agent or 'An agent')} wants to call {call_text}. Allow it?"


async def confirm(question: str) -> bool:
    """Ask a question at the terminal until the answer is yes or no; Enter means no."""
    prompt: PromptSession[str] = PromptSession(output=create_output(sys.stderr))
    while True:
        answer = (await prompt.prompt_async(f"{question} [y/N] ")).strip().lower()
        if answer in {"", "n", "no"}:
            return False
        if answer in {"y", "yes"}:
            return True


def runs(work: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Turn a coroutine function into a command; its errors end it with their exit code."""

    @functools.wraps(work)
    def command(*, as_json: bool = False, **options: Any) -> None:
        try:
            asyncio.run(_run(work(as_json=as_json, **options)))
        except ClientError as error:
            print_error(error, as_json=as_json)
            click.get_current_context().exit(exit_code(error))
        except KeyboardInterrupt:
            click.get_current_context().exit(INTERRUPTED)

    return command


async def _run(work: Awaitable[None]) -> None:
    await work
