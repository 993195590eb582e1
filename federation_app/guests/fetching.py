"""The files of peers: fetched for a message before it is written, and checked like uploads.

A file is fetched as a task of the process, because it may take longer than the peer waits for its
answer: until it is here the peer gets 5.04, and posts what is of other chats before it tries again.
What is here already is found by its handle, from any process. A file that is not what it was said
to be, did not come after `ATTEMPTS`, or whose server was away for `UNREACHABLE_SECONDS`, is given
up; nothing of it is stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode
from weakref import WeakKeyDictionary, WeakValueDictionary

import msgspec
from django.utils import timezone

from agents_app.outbound import guard
from agents_app.outbound.rules import Unreachable
from agents_app.remote.addresses import policy
from chat_app.contents import media_types, quota, reading_rights, storage
from chat_app.contents.filenames import clean_filename
from federation_app import own_names
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.names.tokens import signed_token
from federation_app.guests import accounts
from federation_app.guests.shared_files import FILE_PATH
from federation_app.peers.connections import tls
from sessions_app import database
from sessions_app.process import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.contents.reading_rights import ContentRecord
    from federation_app.guests.contents import FileQuery, SharedFile
    from federation_app.models import Peer

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 1.0
"""How long a peer waits for its answer when the first of the files is begun to be fetched.

It posts one envelope at a time, so this holds up its others. Its repeat does not wait.
"""
ATTEMPTS: Final = 5
"""How often a file is asked for that does not come."""
UNREACHABLE_SECONDS: Final = 3600.0
"""How long a file is asked for whose server sends nothing at all: it may be away for a while."""
AT_ONCE: Final = 6
"""How many files a process fetches at a time; each is held in memory."""
AT_ONCE_OF_PEER: Final = 2
"""How many of those are of one peer, so that a slow one does not hold up the files of others."""
WAITING: Final = 80
"""How many files a process fetches or is about to fetch."""
WAITING_OF_PEER: Final = 20
"""How many of those are of one peer."""
REMEMBERED: Final = 1000
MIN_SECONDS: Final = 10.0
MAX_SECONDS: Final = 120.0
MIN_SPEED: Final = 256 * 1024
"""Bytes a second, below which a file does not come in time."""
UNSHOWN_FOR: Final = timedelta(days=1)
_NAMES: Final = uuid.UUID("5a3f6c1e-6a43-4f0e-9d0c-2c6d6c6f0f4b")
_GONE: Final = frozenset({400, 403, 404, 410, 413})
_LATER: Final = frozenset({429, 503})
# Of its own: a slow file must not take the threads on which envelopes are posted.
_readers: Final = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="files of peers")


class FileProblem(StrEnum):
    """A reason for which a file of a peer is not here."""

    ABSENT = "did not come"
    UNREACHABLE = "could not be asked for"
    REDIRECTED = "was redirected"
    REFUSED = "was refused"
    SIZE = "has another size"
    HASH = "has another hash"
    TYPE = "has another type"
    TOO_LARGE = "is too large"
    NO_ROOM = "has no room here"


class CannotFetch(Exception):
    """A file of a peer was not stored."""

    def __init__(self, problem: FileProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem


@dataclass(frozen=True, kw_only=True)
class _Order:
    """A file to fetch: from where, and for whom; `key` names it in this process."""

    file: SharedFile
    peer_id: int
    url: str
    token: str
    owner: quota.ContentOwner
    handle: str
    content: ContentRecord | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The key of the file among those that a process fetches."""
        return self.handle, f"{self.owner.user_id} {self.owner.key}"


@dataclass
class _Fetches:
    """The files that a process fetches; everything belongs to its loop."""

    tasks: dict[tuple[str, str], asyncio.Task[FileProblem | None]] = field(default_factory=dict)
    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Since when the server of a file sends nothing, by the monotonic clock.
    away: dict[tuple[str, str], float] = field(default_factory=dict)
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    slots_of_peers: WeakValueDictionary[int, asyncio.Semaphore] = field(
        default_factory=WeakValueDictionary
    )
    waiting: Counter[int] = field(default_factory=Counter)

    def forget(self) -> None:
        """Forget what failed if it is too much: their messages were never sent again."""
        if len(self.attempts) + len(self.away) > REMEMBERED:
            self.attempts.clear()
            self.away.clear()
        if len(self.tasks) > REMEMBERED:
            self.tasks = {key: task for key, task in self.tasks.items() if not task.done()}

    def begin(self, order: _Order, chat: quota.ContentOwner) -> None:
        """Fetch a file as a task of the process, which counts until it ends."""
        task = registry.current().spawn(_fetch(self, order, chat), name="fetch a file of a peer")
        self.tasks[order.key] = task
        self.waiting[order.peer_id] += 1
        task.add_done_callback(partial(self._end, order.peer_id))

    def _end(self, peer_id: int, _task: asyncio.Task[FileProblem | None]) -> None:
        self.waiting -= Counter([peer_id])


_fetches: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Fetches]] = WeakKeyDictionary()


async def fetch_files(
    peer: Peer,
    files: Sequence[SharedFile],
    query: FileQuery,
    *,
    chat_id: str,
    user_id: int | None = None,
) -> list[ContentRecord | FileProblem]:
    """Return the files of a message as stored here, in order, or why one is not.

    They belong to the chat `chat_id` here, or to the person who sends them, until they are sent.
    Raises EnvelopeError busy while they are still being fetched.
    """
    fetches = _fetches.setdefault(asyncio.get_running_loop(), _Fetches())
    owner = quota.of_other_servers(chat_id)
    sender = owner if user_id is None else quota.ContentOwner(user_id=user_id)
    orders = await database.run(_orders, peer, files, query, owner, sender)
    waited, patience = [], 0.0
    for order in orders:
        if order.content is not None:
            continue
        if order.key not in fetches.tasks:
            of_peer = fetches.waiting[peer.pk]
            if fetches.waiting.total() >= WAITING or of_peer >= WAITING_OF_PEER:
                raise _busy()
            fetches.forget()
            patience = PATIENCE_SECONDS
            fetches.begin(order, owner)
        waited.append(fetches.tasks[order.key])
    if waited:
        await asyncio.wait(waited, timeout=patience)
    if not all(task.done() for task in waited):
        raise _busy()
    return await _outcome(fetches, peer, orders, sender)


async def _outcome(
    fetches: _Fetches, peer: Peer, orders: Sequence[_Order], owner: quota.ContentOwner
) -> list[ContentRecord | FileProblem]:
    """Return the outcome of a fetch; raises EnvelopeError busy for a file that may still arrive."""
    problems: dict[str, FileProblem] = {}
    for order in orders:
        task = fetches.tasks.pop(order.key, None)
        # The task of a file that was already here may not have ended.
        problem = None if task is None or order.content is not None else task.result()
        if problem is FileProblem.ABSENT:
            fetches.attempts[order.key] += 1
            if fetches.attempts[order.key] < ATTEMPTS:
                raise _busy()
        if problem is FileProblem.UNREACHABLE:
            now = time.monotonic()
            if now - fetches.away.setdefault(order.key, now) < UNREACHABLE_SECONDS:
                raise _busy()
        if problem is not None:
            problems[order.handle] = problem
            logger.warning("a file of %s %s", peer.did, problem)
    for order in orders:
        fetches.attempts.pop(order.key, None)
        fetches.away.pop(order.key, None)
    stored = await database.run(_stored, orders, owner)
    return [
        stored.get(order.handle) or problems.get(order.handle, FileProblem.ABSENT)
        for order in orders
    ]


def _orders(
    peer: Peer,
    files: Sequence[SharedFile],
    query: FileQuery,
    owner: quota.ContentOwner,
    sender: quota.ContentOwner,
) -> list[_Order]:
    own_did = own_names.own_identity().did
    token = signed_token(
        own_names.own_signer(own_did),
        issuer=own_did,
        subject=own_did,
        audience=peer.did,
        scope=f"uamp:{Intent.SUBSCRIBE}",
        now=timezone.now(),
    )
    base = (peer.address or f"https://{accounts.host_of(peer)}").rstrip("/")
    query_string = urlencode(
        {name: value for name, value in msgspec.to_builtins(query).items() if value}
    )
    orders = []
    for file in files:
        name = f"{peer.did} {query.chat} {query.message} {query.ref} {file.file} {file.sha256}"
        handle = str(uuid.uuid5(_NAMES, name))
        orders.append(
            _Order(
                file=file,
                peer_id=peer.pk,
                url=f"{base}/{FILE_PATH}/{file.file}?{query_string}",
                token=token,
                owner=sender,
                handle=handle,
                content=reading_rights.owned(handle, owner=sender)
                or reading_rights.owned(handle, owner=owner),
            )
        )
    return orders


def _stored(orders: Sequence[_Order], owner: quota.ContentOwner) -> dict[str, ContentRecord]:
    stored = {}
    for order in orders:
        content = order.content or reading_rights.owned(order.handle, owner=owner)
        if content is not None:
            stored[order.handle] = content
    return stored


async def _fetch(fetches: _Fetches, order: _Order, chat: quota.ContentOwner) -> FileProblem | None:
    """Fetch, check and store a file; return why it is not here, None if it is."""
    slots = fetches.slots_of_peers.setdefault(order.peer_id, asyncio.Semaphore(AT_ONCE_OF_PEER))
    try:
        await database.run(_check_room, order, chat)
        async with slots, fetches.slots:
            loop = asyncio.get_running_loop()
            data = await loop.run_in_executor(_readers, _read, order)
            await database.run_long(chat.key, _store, order, data)
    except CannotFetch as error:
        return error.problem
    return None


def _check_room(order: _Order, chat: quota.ContentOwner) -> None:
    """Raise CannotFetch for a file that could not be stored, before it is asked for."""
    if order.file.size > quota.largest_file(chat):
        raise CannotFetch(FileProblem.TOO_LARGE)
    try:
        quota.check_quota(chat, order.file.size)
    except quota.QuotaExceeded:
        raise CannotFetch(FileProblem.NO_ROOM) from None


def _read(order: _Order) -> bytes:
    """Return the bytes of a file, which are those that were announced; raises CannotFetch."""
    file, hosts, arrived = order.file, list[str](), list[int]()

    def follow(host: str) -> None:
        if hosts:
            raise CannotFetch(FileProblem.REDIRECTED)
        hosts.append(host)

    limits = replace(
        policy(is_peer=True),
        seconds=min(MAX_SECONDS, MIN_SECONDS + file.size / MIN_SPEED),
        max_bytes=file.size,
    )
    headers = {"Authorization": f"Bearer {order.token}"}
    try:
        answer = guard.fetch(
            order.url,
            limits,
            headers=headers,
            on_host=follow,
            on_bytes=lambda received, _total: arrived.append(received),
            tls=tls(),
        )
    except Unreachable:
        problem = FileProblem.ABSENT if arrived else FileProblem.UNREACHABLE
        raise CannotFetch(problem) from None
    except guard.TooLarge:
        raise CannotFetch(FileProblem.SIZE) from None
    _check_bytes(file, answer)
    return answer.data


def _check_bytes(file: SharedFile, answer: guard.Fetched) -> None:
    """Raise CannotFetch unless an answer is the file that was announced."""
    if answer.status in _GONE:
        raise CannotFetch(FileProblem.REFUSED)
    if answer.status in _LATER:
        raise CannotFetch(FileProblem.UNREACHABLE)
    if answer.status != 200:  # noqa: PLR2004 the status of a whole file
        raise CannotFetch(FileProblem.ABSENT)
    if len(answer.data) != file.size:
        raise CannotFetch(FileProblem.SIZE)
    if hashlib.sha256(answer.data).hexdigest() != file.sha256:
        raise CannotFetch(FileProblem.HASH)
    try:
        proven = media_types.sniff(
            answer.data, declared=file.type, filename=clean_filename(file.name)
        )
    except media_types.InvalidMedia:
        proven = ""
    if proven != file.type:
        raise CannotFetch(FileProblem.TYPE)


def _store(order: _Order, data: bytes) -> None:
    file = order.file
    try:
        storage.store(
            data,
            mime_type=file.type,
            filename=file.name,
            owner=order.owner,
            handle=order.handle,
        )
    except quota.QuotaExceeded:
        raise CannotFetch(FileProblem.NO_ROOM) from None
    except media_types.InvalidMedia:
        raise CannotFetch(FileProblem.TYPE) from None


def forget_unshown(limit: int) -> int:
    """Delete files that were fetched for messages which did not come; return how many."""
    return storage.delete_unshown(timezone.now() - UNSHOWN_FOR, limit)


def _busy() -> EnvelopeError:
    return EnvelopeError(EnvelopeCode.BUSY, "Files of the message are being fetched.")
