"""MCP over the standard input and output of a local program, as lines of JSON.

The program and its children end with the session, and no line may exceed the size limit. (The
transport of the `mcp` package buffers lines of any size.)
"""

import os
import signal
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from agents_app.mcp.places import Program

Incoming = SessionMessage | Exception

STDERR_CHUNKS = 8
"""How many of the last chunks of standard error are kept for the log."""
_FLUSH_SECONDS = 0.5
_EXIT_SECONDS = 2.0
_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)


@dataclass
class Life:
    """The state of a started program; `is_gone` means that it ended before its session.

    Set by the tasks that read and write its pipes and by the session's task, all on one event loop.
    """

    is_too_large: bool = False
    noise: bool = False
    is_ending: bool = False
    is_gone: bool = False
    exit_status: int | None = None
    stderr: deque[bytes] = field(default_factory=lambda: deque(maxlen=STDERR_CHUNKS))

    @property
    def last_words(self) -> str:
        """The end of its standard error."""
        return b"".join(self.stderr).decode(errors="replace").strip()


@asynccontextmanager
async def stdio_streams(
    program: Program, max_bytes: int, life: Life
) -> AsyncGenerator[
    tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]
]:
    """Start a program and yield the streams of its session; raises OSError if it does not start."""
    process = await anyio.open_process(
        [program.command, *program.args],
        env=get_default_environment() | dict(program.env),
        start_new_session=True,
    )
    to_us, from_it = anyio.create_memory_object_stream[Incoming](0)
    to_it, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    flushed, drained = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_read, process, to_us, max_bytes, life, drained)
        group.start_soon(_write, process, from_us, to_us, flushed)
        group.start_soon(_listen, process.stderr, life)
        try:
            yield from_it, to_it
        finally:
            life.is_ending = True
            with anyio.CancelScope(shield=True):
                # Accepted messages, above all a cancellation, are still sent.
                to_it.close()
                with anyio.move_on_after(_FLUSH_SECONDS):
                    await flushed.wait()
                await _end(process)
                life.exit_status = process.returncode
                # Its last words; a process that has left the group may hold the pipes open forever.
                with anyio.move_on_after(_FLUSH_SECONDS):
                    await drained.wait()
            for stream in (from_it, to_it, to_us, from_us):
                stream.close()
            group.cancel_scope.cancel()


async def _read(
    process: Process,
    to_us: MemoryObjectSendStream[Incoming],
    max_bytes: int,
    life: Life,
    drained: anyio.Event,
) -> None:
    with to_us, suppress(*_GONE):
        async for line in _lines(process.stdout, max_bytes):
            if len(line) > max_bytes:
                life.is_too_large = True
                break
            await to_us.send(_message(line, life))
        else:
            life.is_gone = not life.is_ending
    # A program that cannot write does not exit.
    with suppress(*_GONE):
        async for _ in _chunks(process.stdout):
            pass
    drained.set()


async def _lines(stream: ByteReceiveStream | None, max_bytes: int) -> AsyncGenerator[bytes]:
    """Yield the lines of a stream; stop after yielding the start of one that is too long."""
    buffer = bytearray()
    async for chunk in _chunks(stream):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            yield bytes(buffer + line)
            buffer.clear()
        buffer += rest
        if len(buffer) > max_bytes:
            yield bytes(buffer)
            return


def _message(line: bytes, life: Life) -> Incoming:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        life.noise = True
        return error


async def _write(
    process: Process,
    from_us: MemoryObjectReceiveStream[SessionMessage],
    to_us: MemoryObjectSendStream[Incoming],
    flushed: anyio.Event,
) -> None:
    try:
        with from_us:
            async for sent in from_us:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                if process.stdin is not None:
                    await process.stdin.send(line.encode() + b"\n")
    except _GONE:
        # The program reads no more: every call that waits for an answer has to fail.
        to_us.close()
    finally:
        flushed.set()


async def _listen(stderr: ByteReceiveStream | None, life: Life) -> None:
    with suppress(*_GONE):
        async for chunk in _chunks(stderr):
            life.stderr.append(chunk)


async def _chunks(stream: ByteReceiveStream | None) -> AsyncGenerator[bytes]:
    if stream is not None:
        async for chunk in stream:
            yield chunk


async def _end(process: Process) -> None:
    """Close the program's input; kill its process group if that does not end it."""
    with suppress(*_GONE):
        if process.stdin is not None:
            await process.stdin.aclose()
    for end in (None, signal.SIGTERM, signal.SIGKILL):
        if end is not None:
            _kill(process, end)
        if await _has_ended(process):
            break
    # Kill any processes left in its group.
    _kill(process, signal.SIGKILL)


def _kill(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def _has_ended(process: Process) -> bool:
    # This may wait for a process that holds the pipes, but the exit status is known anyway.
    with anyio.move_on_after(_EXIT_SECONDS):
        await process.wait()
    return process.returncode is not None
