"""The channel layer of the embedded run: in memory, thread-safe and bounded.

The stock in-memory layer does not wake the receiver's event loop if the sender is on another
thread. Here, all state is under one lock, and a sender wakes each foreign loop once per send.

A channel exists from `new_channel`, `group_add` or `receive` until its `receive` is cancelled (as
in the Redis pub/sub layer), or until no receiver has waited on it for `expiry` seconds. It belongs
to the loop that first named it. Delivery is at most once: a message for a full or unknown channel
is dropped and counted, since the log of the chat is the source of truth.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from channels.exceptions import ChannelFull
from channels.layers import BaseChannelLayer

from uamp_project.embedded.bridge import Hub, Kind, Message, Spoke

if TYPE_CHECKING:
    from collections.abc import Iterable

logger = logging.getLogger(__name__)


class _Channel:
    """Messages waiting for one reader, a task of `loop`.

    The layer changes it under its lock, and resolves `waiter` on `loop`.
    """

    __slots__ = ("dropped", "groups", "loop", "messages", "read_at", "waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.messages: deque[Message] = deque()
        self.waiter: asyncio.Future[None] | None = None
        self.groups: set[str] = set()
        self.read_at = time.monotonic()
        self.dropped = 0


def _wake(channels: Iterable[_Channel]) -> None:
    """Wake the readers of these channels; runs on their loop."""
    for channel in channels:
        if channel.waiter is not None and not channel.waiter.done():
            channel.waiter.set_result(None)


class EmbeddedChannelLayer(BaseChannelLayer):
    """Channels and groups in this process, bridged to other processes.

    `socket_path` and the environment variable UAMP_LAYER_ROLE select the bridge: a `hub` listens
    there and delivers incoming messages; a `spoke` sends everything there and receives nothing;
    without a role, the layer stays within the process. Messages are flat dicts: each receiver gets
    a separate dict with shared values.

    Tasks of any event loop and the threads of the hub may call it: a lock guards the channels, and
    each reader is woken on its own loop. Only one task at a time may receive from a channel.
    """

    extensions: ClassVar = ["groups", "flush"]

    def __init__(self, *, socket_path: str = "", capacity: int = 1000, expiry: float = 60) -> None:
        super().__init__(expiry=expiry, capacity=capacity)
        self._lock = threading.Lock()
        self._channels: dict[str, _Channel] = {}
        self._groups: dict[str, dict[str, _Channel]] = {}
        self._swept_at = time.monotonic()
        self._dropped = 0
        role = os.environ.get("UAMP_LAYER_ROLE", "") if socket_path else ""
        if role not in {"", "hub", "spoke"}:
            raise ValueError(f"UAMP_LAYER_ROLE is 'hub' or 'spoke', not {role!r}")
        self._hub = Hub(Path(socket_path), self._deliver) if role == "hub" else None
        self._spoke = Spoke(Path(socket_path)) if role == "spoke" else None

    @property
    def dropped(self) -> int:
        """The messages dropped since the start for lack of room, a channel or a hub."""
        return self._dropped + (self._spoke.dropped if self._spoke else 0)

    @property
    def channel_count(self) -> int:
        """The number of channels."""
        return len(self._channels)

    @property
    def group_count(self) -> int:
        """The number of groups with members."""
        return len(self._groups)

    def close(self) -> None:
        """Close the bridge; the layer continues to work within the process."""
        if self._hub:
            self._hub.close()
            self._hub = None
        if self._spoke:
            self._spoke.close()

    # --- The channel layer API ------------------------------------------------------------------

    async def new_channel(self, prefix: str = "specific") -> str:
        """Return the name of a new channel, which belongs to the running loop."""
        self._require_inbound()
        name = f"{prefix}.embedded!{secrets.token_hex(12)}"
        with self._lock:
            self._sweep()
            self._channels[name] = _Channel(asyncio.get_running_loop())
        return name

    async def send(self, channel: str, message: Message) -> None:
        """Put a message on a channel; a message for an unknown channel is dropped.

        Raises ChannelFull if `capacity` messages are already waiting there.
        """
        self.require_valid_channel_name(channel)
        if self._spoke:
            self._spoke.send("channel", channel, message)
        elif not self._send(channel, message, asyncio.get_running_loop()):
            raise ChannelFull

    async def receive(self, channel: str) -> Message:
        """Wait for the next message of a channel.

        Cancelling ends the channel and its group memberships. Raises RuntimeError if another task
        is already waiting there, or if the channel belongs to another running loop.
        """
        self._require_inbound()
        self.require_valid_channel_name(channel)
        while True:
            with self._lock:
                state = self._open(channel)
                state.read_at = time.monotonic()
                if state.loop is not asyncio.get_running_loop():
                    raise RuntimeError(f"channel {channel} belongs to another event loop")
                if state.messages:
                    return state.messages.popleft()
                if state.waiter is not None:
                    raise RuntimeError(f"channel {channel} already has a reader")
                waiter = state.waiter = state.loop.create_future()
            try:
                await waiter
            except asyncio.CancelledError:
                with self._lock:
                    self._remove(channel)
                raise
            finally:
                state.waiter = None
                state.read_at = time.monotonic()

    async def flush(self) -> None:
        """Remove every channel and group; waiting receivers continue on a new channel."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Channel]] = {}
        with self._lock:
            for channel in self._channels.values():
                by_loop.setdefault(channel.loop, []).append(channel)
            self._channels.clear()
            self._groups.clear()
        self._notify(by_loop, asyncio.get_running_loop())

    async def group_add(self, group: str, channel: str) -> None:
        """Add a channel to a group; adding it twice has no further effect."""
        self._require_inbound()
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        with self._lock:
            state = self._open(channel)
            state.groups.add(group)
            self._groups.setdefault(group, {})[channel] = state

    async def group_discard(self, group: str, channel: str) -> None:
        """Remove a channel from a group; does nothing if it is not a member."""
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        with self._lock:
            if state := self._channels.get(channel):
                state.groups.discard(group)
            self._leave(group, channel)

    async def group_send(self, group: str, message: Message) -> None:
        """Put a message on every channel of a group; full channels miss it."""
        self.require_valid_group_name(group)
        if self._spoke:
            self._spoke.send("group", group, message)
        else:
            self._group_send(group, message, asyncio.get_running_loop())

    # --- Delivery, from any thread --------------------------------------------------------------

    def _deliver(self, kind: Kind, name: str, message: Message) -> None:
        """Deliver one frame from the bridge; runs on a thread of the hub."""
        if kind == "group":
            self._group_send(name, message, None)
        else:
            self._send(name, message, None)

    def _send(self, name: str, message: Message, here: asyncio.AbstractEventLoop | None) -> bool:
        """Put a message on one channel; return False only if it is full."""
        with self._lock:
            channel = self._channels.get(name)
            if channel is None:
                self._dropped += 1
                return True
            if not self._put(name, channel, message):
                return False
        self._notify({channel.loop: [channel]}, here)
        return True

    def _group_send(
        self, group: str, message: Message, here: asyncio.AbstractEventLoop | None
    ) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[_Channel]] = {}
        with self._lock:
            for name, channel in self._groups.get(group, {}).items():
                if self._put(name, channel, message):
                    by_loop.setdefault(channel.loop, []).append(channel)
        self._notify(by_loop, here)

    def _put(self, name: str, channel: _Channel, message: Message) -> bool:
        if len(channel.messages) >= self.capacity:
            self._dropped += 1
            channel.dropped += 1
            if channel.dropped == 1:
                logger.warning("channel %s is full; its reader misses messages", name)
            return False
        channel.messages.append(dict(message))
        return True

    def _notify(
        self,
        by_loop: dict[asyncio.AbstractEventLoop, list[_Channel]],
        here: asyncio.AbstractEventLoop | None,
    ) -> None:
        for loop, channels in by_loop.items():
            if loop is here:
                _wake(channels)
                continue
            try:
                loop.call_soon_threadsafe(_wake, channels)
            except RuntimeError:
                # The loop is closed, so its readers and their channels are gone.
                with self._lock:
                    for name in [n for n, c in self._channels.items() if c.loop is loop]:
                        self._dropped += len(self._channels[name].messages)
                        self._remove(name)

    # --- State, under the lock ------------------------------------------------------------------

    def _open(self, name: str) -> _Channel:
        state = self._channels.get(name)
        if state is not None and state.loop.is_closed():
            self._remove(name)
            state = None
        if state is None:
            state = self._channels[name] = _Channel(asyncio.get_running_loop())
        return state

    def _remove(self, name: str) -> None:
        if state := self._channels.pop(name, None):
            for group in state.groups:
                self._leave(group, name)

    def _leave(self, group: str, channel: str) -> None:
        if members := self._groups.get(group):
            members.pop(channel, None)
            if not members:
                del self._groups[group]

    def _sweep(self) -> None:
        """Drop channels whose reader left without being cancelled, after its last receive."""
        now = time.monotonic()
        if now - self._swept_at < self.expiry:
            return
        self._swept_at = now
        for name in [
            name
            for name, channel in self._channels.items()
            if channel.waiter is None and now - channel.read_at > self.expiry
        ]:
            self._remove(name)

    def _require_inbound(self) -> None:
        if self._spoke:
            raise RuntimeError("this process only sends to the channel layer (UAMP_LAYER_ROLE)")
