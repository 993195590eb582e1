"""Chats, history, files and money over REST, for clients that work without a session."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import msgspec

from uamp.client.errors import ClientError, ExportCutError, InvalidRequestError, NotFoundError
from uamp.client.exports import ExportCheck
from uamp.client.records import (
    AccountBalance,
    AgentListing,
    Caller,
    ChatSummary,
    IssuedKey,
    Listed,
    StoredContent,
    StoredMessage,
    WrittenMessage,
)
from uamp.client.uploads import upload_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime

    from uamp.client.exports import ExportSummary
    from uamp.client.rest import Rest

_CHAT_ID = re.compile(r"chat_[A-Za-z0-9_-]+")
_CONTENT_PATH = re.compile(r"(?:.*/api/content/)?([0-9a-fA-F-]{36})/?(?:\?.*)?")
_DOWNLOAD_ATTEMPTS = 4
_CHUNK = 64 * 1024


def is_chat_id(name_or_id: str) -> bool:
    """Return whether a string is a chat's id rather than its title."""
    return _CHAT_ID.fullmatch(name_or_id) is not None


class ServerApi:
    """The REST routes as methods; all raise a ClientError of ``uamp.client.errors``."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def me(self) -> Caller:
        """Return the owner of this key."""
        return await self._rest.read("/api/v1/me", Caller)

    async def agents(self) -> list[AgentListing]:
        """Return the agents that the caller may use."""
        page = await self._rest.read("/api/v1/agents", Listed)
        return [msgspec.convert(row, AgentListing) for row in page.data]

    def chats(self, *, kind: str = "group", limit: int | None = None) -> AsyncIterator[ChatSummary]:
        """Yield the caller's chats, latest first; ``kind`` is group, session or all."""
        return self._rest.pages("/api/v1/chats", ChatSummary, limit=limit, query={"kind": kind})

    async def find_chat(self, name_or_id: str) -> ChatSummary:
        """Find a chat by its id, or by its title regardless of case.

        Raises NotFoundError, or InvalidRequestError if several chats have the title.
        """
        if is_chat_id(name_or_id):
            return await self._rest.read(f"/api/v1/chats/{name_or_id}", ChatSummary)
        title = name_or_id.casefold()
        matches = [chat async for chat in self.chats() if chat.title.casefold() == title]
        if not matches:
            raise NotFoundError(
                f"You are not in a chat called {name_or_id!r}.",
                code="chat_not_found",
                what_to_do="List your chats, or use the id of one.",
            )
        if len(matches) > 1:
            ids = ", ".join(chat.id for chat in matches)
            raise InvalidRequestError(
                f"{len(matches)} chats have the title {name_or_id!r}: {ids}.",
                code="ambiguous_chat",
                what_to_do="Use the id of the chat.",
            )
        return matches[0]

    async def new_chat(
        self, title: str = "", *, users: Sequence[str] = (), agents: Sequence[str] = ()
    ) -> ChatSummary:
        """Create a chat with people and agents, given by name; the caller is a member."""
        body = {"title": title, "users": list(users), "agents": list(agents)}
        return await self._rest.write("POST", "/api/v1/chats", body, kind=ChatSummary)

    async def send_message(
        self,
        chat_id: str,
        text: str,
        *,
        files: Sequence[str | Path] = (),
        reply_to: str | None = None,
        thread: str | None = None,
    ) -> StoredMessage:
        """Send a message without a session; its agents answer, but this does not wait for them.

        The request has an Idempotency-Key: if the response is lost, it is retried without sending
        the message twice.
        """
        attachments = [await self.upload(file) for file in files]
        body: dict[str, object] = {"content": text}
        body |= {"attachments": [file.content_id for file in attachments]} if attachments else {}
        body |= {"reply_to": reply_to} if reply_to else {}
        body |= {"thread": thread} if thread else {}
        response = await self._rest.write(
            "POST", f"/api/v1/chats/{chat_id}/messages", body, repeatable=True, kind=WrittenMessage
        )
        return response.message

    def history(
        self, chat_id: str, *, limit: int | None = None, newest_first: bool = False
    ) -> AsyncIterator[StoredMessage]:
        """Yield the messages of a chat, oldest first unless ``newest_first``."""
        order = "desc" if newest_first else "asc"
        path = f"/api/v1/chats/{chat_id}/messages"
        return self._rest.pages(path, StoredMessage, limit=limit, query={"order": order})

    async def search(self, query: str, *, limit: int = 50) -> list[StoredMessage]:
        """Return the messages that match every word and filter of a search, newest first."""
        page = await self._rest.read("/api/v1/search", Listed, q=query, limit=min(limit, 50))
        return [msgspec.convert(row, StoredMessage) for row in page.data]

    async def balance(self) -> AccountBalance:
        """Return the caller's balance for paying answers."""
        return await self._rest.read("/api/payments/balance", AccountBalance)

    # --- Keys ---

    async def keys(self) -> list[IssuedKey]:
        """Return the caller's active keys, without their secrets."""
        page = await self._rest.read("/api/v1/keys", Listed)
        return [msgspec.convert(row, IssuedKey) for row in page.data]

    async def create_key(
        self,
        name: str,
        *,
        scopes: Sequence[str],
        chats: Sequence[str] | None = None,
        agents: Sequence[str] | None = None,
        expires_at: datetime | None = None,
    ) -> IssuedKey:
        """Create a key with a subset of this key's rights; only this call returns its secret.

        ``chats`` and ``agents`` are ids: the key is restricted to them. If the answer is lost, the
        request is not repeated: see ``keys``.
        """
        body: dict[str, object] = {"name": name, "scopes": list(scopes)}
        body |= {} if chats is None else {"chats": list(chats)}
        body |= {} if agents is None else {"agents": list(agents)}
        body |= {} if expires_at is None else {"expires_at": expires_at.isoformat()}
        return await self._rest.write("POST", "/api/v1/keys", body, kind=IssuedKey)

    async def rotate_key(self, key_id: str, *, keep_seconds: int = 0) -> IssuedKey:
        """Give a key a new secret; the previous one stays valid for ``keep_seconds``."""
        path = f"/api/v1/keys/{key_id}/rotate"
        body = {"keep_seconds": keep_seconds}
        return await self._rest.write("POST", path, body, kind=IssuedKey)

    async def revoke_key(self, key_id: str) -> None:
        """Revoke a key; its connections and requests end within five seconds."""
        await self._rest.request("DELETE", f"/api/v1/keys/{key_id}")

    # --- Files ---

    async def upload(self, path: str | Path) -> StoredContent:
        """Upload a file in parts, so that a lost connection costs only the last part."""
        return await upload_file(self._rest, Path(path))

    async def download(self, content: str, path: str | Path) -> StoredContent:
        """Download a content, by id or URL, to a file, and verify its SHA-256.

        An interrupted transfer resumes where it left off, at most three times.
        """
        match = _CONTENT_PATH.fullmatch(content)
        if match is None:
            raise InvalidRequestError(
                f"{content!r} is not the id of a stored file.", code="content_not_found"
            )
        content_id = match[1].lower()
        stored = await self._rest.read(f"/api/v1/contents/{content_id}", StoredContent)
        partial = Path(f"{path}.part")
        try:
            digest = await self._fetch(stored, partial)
            if digest != stored.sha256:
                raise ClientError("The file does not match its SHA-256.", code="file_changed")
            await asyncio.to_thread(os.replace, partial, path)
        finally:
            await asyncio.to_thread(partial.unlink, missing_ok=True)
        return stored

    async def _fetch(self, stored: StoredContent, partial: Path) -> str:
        digest, size = hashlib.sha256(), 0
        with partial.open("wb") as file:
            for attempt in range(1, _DOWNLOAD_ATTEMPTS + 1):
                headers = {"Range": f"bytes={size}-"} if size else {}
                try:
                    async with self._rest.stream(stored.url, headers=headers) as answer:
                        if size and answer.status_code != httpx2.codes.PARTIAL_CONTENT:
                            raise ClientError(
                                "The server did not resume the transfer.", code="no_ranges"
                            )
                        async for chunk in answer.aiter_bytes(_CHUNK):
                            file.write(chunk)
                            digest.update(chunk)
                            size += len(chunk)
                    break
                except httpx2.TransportError:
                    if attempt == _DOWNLOAD_ATTEMPTS:
                        raise
        return digest.hexdigest()

    # --- Exports ---

    async def export(self, chat_id: str, path: str | Path) -> ExportSummary:
        """Export a chat to an NDJSON file, which is created only once it is complete.

        Raises ExportCutError if the transfer was cut, or if the count or SHA-256 does not match.
        """
        partial = Path(f"{path}.part")
        try:
            with (
                ExportCheck() as check,
                partial.open("wb") as file,  # noqa: ASYNC230 a local file, line by line
            ):
                async for line in self.export_lines(chat_id):
                    check.add(line)
                    file.write(line)
                summary = check.finish()
            await asyncio.to_thread(os.replace, partial, path)
        finally:
            await asyncio.to_thread(partial.unlink, missing_ok=True)
        return summary

    async def export_lines(self, chat_id: str) -> AsyncIterator[bytes]:
        """Yield the lines of an NDJSON export with its log, each with its line feed, unchecked.

        Raises ExportCutError if the transfer is interrupted.
        """
        partial = b""
        address = f"/api/v1/chats/{chat_id}/export"
        params = {"format": "ndjson", "log": "true"}
        try:
            async with self._rest.stream(address, params=params) as answer:
                async for chunk in answer.aiter_bytes(_CHUNK):
                    *lines, partial = (partial + chunk).split(b"\n")
                    for line in lines:
                        yield line + b"\n"
        except httpx2.TransportError as error:
            raise ExportCutError(f"The export was cut off: {error}") from None
        if partial:
            yield partial
