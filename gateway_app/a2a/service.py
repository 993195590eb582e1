"""The A2A methods for every dialect and binding: the tasks of one agent.

A task is a response. It keeps running when its client leaves, and can be found by its id.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gateway_app.a2a.tasks.errors import TaskErrorReason, TaskRefused
from gateway_app.a2a.tasks.messages import (
    CONTEXT_EXTENSION,
    answers_of,
    follow_up_of,
    invalid,
    turn_of,
)
from gateway_app.a2a.tasks.snapshot import task_of
from gateway_app.a2a.tasks.writer import TaskWriter
from gateway_app.backend import webhooks
from gateway_app.backend.exchange import Exchange
from gateway_app.backend.responses import ResponseReader
from gateway_app.http import KEEP_ALIVE
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from django.http import HttpRequest, StreamingHttpResponse

    from gateway_app.a2a.tasks.messages import SentMessage
    from gateway_app.a2a.tasks.task import Task, TaskUpdate
    from gateway_app.types.stored_response import ResponsePage, StoredResponse
    from gateway_app.types.webhook_receiver import WebhookReceiver

    DemandBody: TypeAlias = Callable[[Mapping[str, Any]], bytes]
    Encode: TypeAlias = Callable[[Task | TaskUpdate | TaskRefused | RemoteProtocolError], bytes]

TRANSPORT: Final = "a2a"
# How often a stream checks whether the input that its task awaits has arrived.
ASKING_SECONDS: Final = 1.0
_UNNAMED: Final = "default"


class TaskService:
    """The tasks of one agent, for one request; methods are called from the request's task.

    They raise TaskRefused and RemoteProtocolError.
    """

    def __init__(self, request: HttpRequest, agent: str, *, webhook_format: str = "") -> None:
        self._request = request
        self._agent = agent
        self._webhook_format = webhook_format

    async def send(
        self, sent: SentMessage, demand_body: DemandBody | None = None
    ) -> tuple[Task, Mapping[str, str]]:
        """Begin or continue a task; return it at once, or when it ends or waits for input.

        Also returns the response headers. See `stream` for `demand_body`.
        """
        exchange = await self._exchange(demand_body)
        try:
            reader = self._reader(exchange)
            writer = await self._enter(exchange, reader, sent)
            if sent.blocking:
                await _end_of(exchange, writer)
            stored = await self._with_history(reader, exchange.response_id, sent.history_length)
            task = task_of(
                stored,
                link=reader.link_in(stored.chat_id),
                history_length=sent.history_length,
                accepts_data=sent.accepts_data,
                refusal=writer.refusal,
            )
            return task, exchange.headers
        finally:
            await exchange.close()

    async def stream(
        self, sent: SentMessage, encode: Encode, *, demand_body: DemandBody | None = None
    ) -> StreamingHttpResponse:
        """Begin or continue a task, and stream it: the task first, then its updates.

        With `demand_body`, raises PaymentDemanded and begins nothing that is unpaid.
        """
        exchange = await self._exchange(demand_body)
        try:
            reader = self._reader(exchange)
            writer = await self._enter(exchange, reader, sent)
            stored = await self._with_history(reader, exchange.response_id, sent.history_length)
            first = writer.initial_task(stored, history_length=sent.history_length)
        except BaseException:
            await exchange.close()
            raise
        return exchange.stream(self._frames(exchange, reader, writer, [encode(first)], encode))

    async def subscribe(
        self, task_id: str, encode: Encode, *, follows: bool = False
    ) -> StreamingHttpResponse:
        """Stream an unfinished task, in whichever process it runs.

        With `follows`, the stream does not stop at requests for input, but only at the end of the
        task (A2A §3.1.6).
        """
        exchange = await self._exchange()
        try:
            reader = self._reader(exchange)
            stored = await self._with_history(reader, task_id)
            _check_live(stored, TaskErrorReason.UNSUPPORTED_OPERATION)
            writer = TaskWriter(task_id, stored.thread, link=reader.link_in(stored.chat_id))
            list(writer.feed(await exchange.join(task_id)))
            first = [encode(writer.initial_task(stored))]
        except BaseException:
            await exchange.close()
            raise
        frames = self._frames(exchange, reader, writer, first, encode)
        if follows:
            frames = self._followed(frames, exchange, reader, writer, encode)
        return exchange.stream(frames)

    async def get(self, task_id: str, *, history_length: int | None = None) -> Task:
        """Return a task in its current state."""
        reader = await self._reader_alone()
        stored = await self._with_history(reader, task_id, history_length)
        return task_of(stored, link=reader.link_in(stored.chat_id), history_length=history_length)

    async def cancel(self, task_id: str) -> Task:
        """Cancel a task, in whichever process it runs, and return it."""
        exchange = await self._exchange()
        try:
            reader = self._reader(exchange)
            stored = await self._stored(reader, task_id)
            _check_live(stored, TaskErrorReason.TASK_NOT_CANCELABLE)
            stored = await reader.cancel(exchange, task_id) or stored
            (stored,) = await reader.with_follow_ups([stored])
            return task_of(stored, link=reader.link_in(stored.chat_id))
        finally:
            await exchange.close()

    async def page(
        self, *, history_length: int | None, with_artifacts: bool, **which: Any
    ) -> tuple[list[Task], ResponsePage]:
        """Return a page of tasks; `which` is passed to `ResponseReader.page`."""
        reader = await self._reader_alone()
        page = await reader.page(**which)
        responses = page.responses
        if history_length != 0:
            responses = tuple(await reader.with_follow_ups(responses))
        tasks = [
            task_of(
                stored,
                link=reader.link_in(stored.chat_id),
                history_length=history_length,
                with_artifacts=with_artifacts,
            )
            for stored in responses
        ]
        return tasks, page

    # --- Receivers of push notifications ---

    async def set_receiver(self, task_id: str, receiver: WebhookReceiver) -> WebhookReceiver:
        """Set a receiver of a task's future states; return it with its name."""
        reader = await self._reader_alone()
        await self._stored(reader, task_id)
        return await self._set_receiver(reader, task_id, receiver, from_beginning=False)

    async def get_receiver(self, task_id: str, name: str) -> WebhookReceiver:
        """Return the receiver of this name; without a name, the one that was set first.

        `default` also finds the receiver that was set without a name.
        """
        reader = await self._reader_alone()
        await self._stored(reader, task_id)
        find = partial(webhooks.find_receiver, principal=reader.principal)
        if name:
            receiver = await find(task_id, name)
            if receiver is None and name == _UNNAMED:
                receiver = await find(task_id, task_id)
        else:
            receivers = await webhooks.list_receivers(task_id, principal=reader.principal)
            receiver = next(iter(receivers), None)
        if receiver is None:
            raise TaskRefused(
                TaskErrorReason.TASK_NOT_FOUND, "The task has no such push notification config."
            )
        return receiver

    async def list_receivers(self, task_id: str) -> Sequence[WebhookReceiver]:
        """Return the receivers of a task."""
        reader = await self._reader_alone()
        await self._stored(reader, task_id)
        return await webhooks.list_receivers(task_id, principal=reader.principal)

    async def delete_receiver(self, task_id: str, name: str) -> None:
        """Delete the receiver of this name, if any."""
        reader = await self._reader_alone()
        await self._stored(reader, task_id)
        await webhooks.delete_receiver(task_id, name, principal=reader.principal)

    async def _set_receiver(
        self,
        reader: ResponseReader,
        task_id: str,
        receiver: WebhookReceiver,
        *,
        from_beginning: bool,
    ) -> WebhookReceiver:
        named = replace(receiver, name=receiver.name or task_id)
        await webhooks.set_receiver(
            task_id,
            named,
            principal=reader.principal,
            webhook_format=self._webhook_format,
            origin=self._request.build_absolute_uri("/").rstrip("/"),
            from_beginning=from_beginning,
        )
        return replace(named, credentials="")

    # --- Parts of the methods ---

    async def _exchange(self, demand_body: DemandBody | None = None) -> Exchange:
        return await Exchange.of(self._request, TRANSPORT, demand_body=demand_body)

    def _reader(self, exchange: Exchange) -> ResponseReader:
        return ResponseReader(
            self._request.build_absolute_uri(),
            exchange.principal,
            transport=TRANSPORT,
            agent=self._agent,
            extension=CONTEXT_EXTENSION,
        )

    async def _reader_alone(self) -> ResponseReader:
        return await ResponseReader.of(
            self._request, transport=TRANSPORT, agent=self._agent, extension=CONTEXT_EXTENSION
        )

    async def _stored(self, reader: ResponseReader, task_id: str) -> StoredResponse:
        stored = await reader.find(task_id)
        if stored is None:
            raise TaskRefused(
                TaskErrorReason.TASK_NOT_FOUND, "Task not found: it is unknown, or not yours."
            )
        return stored

    async def _with_history(
        self, reader: ResponseReader, task_id: str, history_length: int | None = None
    ) -> StoredResponse:
        """Return the response of a task, with its history unless `history_length` is 0."""
        stored = await self._stored(reader, task_id)
        if history_length != 0:
            (stored,) = await reader.with_follow_ups([stored])
        return stored

    async def _enter(
        self, exchange: Exchange, reader: ResponseReader, sent: SentMessage
    ) -> TaskWriter:
        """Begin the task of a message, or answer an existing task with the message."""
        if sent.receiver is not None:
            webhooks.check(sent.receiver.url, principal=reader.principal)
        writer = await (self._answer if sent.task_id else self._begin)(exchange, reader, sent)
        if sent.receiver is not None:
            await self._set_receiver(
                reader, exchange.response_id, sent.receiver, from_beginning=not sent.task_id
            )
        return writer

    async def _begin(
        self, exchange: Exchange, reader: ResponseReader, sent: SentMessage
    ) -> TaskWriter:
        turn = turn_of(sent, agent=self._agent)
        if sent.context_id:
            session_id = await reader.session_named(sent.context_id)
            if session_id is None and reader.is_visitor:
                raise invalid(
                    "There is no such context. Without a key, leave out `contextId` for a new one."
                )
            turn = replace(turn, session_id=session_id or "")
        await exchange.begin(turn)
        return TaskWriter(
            exchange.response_id,
            sent.context_id or exchange.session_id,
            link=reader.link_in(exchange.chat_id),
            accepts_data=sent.accepts_data,
        )

    async def _answer(
        self, exchange: Exchange, reader: ResponseReader, sent: SentMessage
    ) -> TaskWriter:
        stored = await self._stored(reader, sent.task_id)
        if sent.context_id and sent.context_id != stored.thread:
            raise invalid("`contextId` does not match the task.")
        if stored.has_ended or not stored.pending_questions:
            raise TaskRefused(
                TaskErrorReason.UNSUPPORTED_OPERATION,
                "The task has ended. Start a new one in its context."
                if stored.has_ended
                else "The task is running and is not waiting for a message.",
            )
        answers = answers_of(sent, stored.pending_questions, task_id=stored.id)
        writer = TaskWriter(
            stored.id,
            stored.thread,
            link=reader.link_in(stored.chat_id),
            accepts_data=sent.accepts_data,
        )
        # The client already has the earlier updates, in the task as it is returned.
        list(writer.feed(await exchange.join(stored.id)))
        for answer in answers:
            await exchange.send(answer)
        await reader.add_follow_up(stored.id, follow_up_of(sent, answers))
        return writer

    async def _frames(
        self,
        exchange: Exchange,
        reader: ResponseReader,
        writer: TaskWriter,
        first: list[bytes],
        encode: Encode,
    ) -> AsyncIterator[bytes]:
        yield b"".join(first)
        try:
            if not writer.has_ended:
                async for events in exchange.events():
                    frames = b"".join(encode(update) for update in writer.feed(events))
                    if frames or not events:
                        yield frames or KEEP_ALIVE
                    if exchange.has_ended:
                        break
            stored = await self._stored(reader, exchange.response_id)
            yield encode(writer.status(stored))
        except (TaskRefused, RemoteProtocolError) as error:
            yield encode(error)

    async def _followed(
        self,
        frames: AsyncIterator[bytes],
        first: Exchange,
        reader: ResponseReader,
        writer: TaskWriter,
        encode: Encode,
    ) -> AsyncIterator[bytes]:
        """Yield frames, and continue with further ones each time the task receives its input.

        `first` is the exchange of the frames, which is closed when its key or the process ends.
        """
        async for frame in frames:
            yield frame
        while not writer.has_ended and not first.is_closed:
            yield KEEP_ALIVE
            await asyncio.sleep(ASKING_SECONDS)
            try:
                first.check_session()
                if await reader.is_asking(writer.task_id):
                    continue
                exchange = await self._exchange()
                try:
                    exchange.end_with_process()
                    missed = writer.feed(await exchange.join(writer.task_id))
                    frames = self._frames(exchange, reader, writer, [*map(encode, missed)], encode)
                    async for frame in frames:
                        yield frame
                finally:
                    await exchange.close()
            except RemoteProtocolError as error:
                yield b"".join(map(encode, await _end_or(error, reader, writer)))
                return


def _check_live(stored: StoredResponse, reason: TaskErrorReason) -> None:
    if stored.has_ended:
        raise TaskRefused(reason, f"The task has ended: it is {stored.status}.")


async def _end_or(
    error: RemoteProtocolError, reader: ResponseReader, writer: TaskWriter
) -> list[TaskUpdate | RemoteProtocolError]:
    """Return the updates of a task that has ended together with its session, or the error."""
    if error.code != ErrorCode.UNKNOWN_SESSION:  # a revoked key is `unauthorized`
        return [error]
    stored = await reader.find(writer.task_id)
    end = None if stored is None else await reader.end_of(stored)
    return [*writer.feed([end]), writer.status(stored)] if stored and end else [error]


async def _end_of(exchange: Exchange, writer: TaskWriter) -> None:
    """Wait until the response ends or waits for its client."""
    if writer.has_ended:
        return
    async for events in exchange.events():
        list(writer.feed(events))
        if exchange.has_ended:
            return
