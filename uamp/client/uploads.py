"""Uploads a file in parts and resumes after a lost connection (tus 1.0.0)."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from uamp.client.errors import ClientError, ConnectionLostError, InvalidRequestError
from uamp.client.records import StoredContent, StoredUpload

if TYPE_CHECKING:
    from pathlib import Path

    from uamp.client.rest import Rest

PART_BYTES: Final = 1024 * 1024
PARTS: Final = 900
"""Keeps an upload below the 1,000 parts that a server accepts."""
_PATH: Final = "/api/v1/uploads"
_VERSION: Final = {"Tus-Resumable": "1.0.0"}
_PART_TYPE: Final = "application/offset+octet-stream"
_ATTEMPTS: Final = 4
"""The maximum number of attempts in a row without progress."""


async def upload_file(rest: Rest, file: Path) -> StoredContent:
    """Upload a file to the server; an empty file takes one request. Raises ClientError."""
    size = await _size(file)
    if size == 0:
        answer = await rest.request("POST", "/api/v1/contents", files={"file": (file.name, b"")})
        return msgspec.json.decode(answer.content, type=StoredContent)
    upload = await _begin(rest, file, size)
    try:
        return await _send(rest, file, upload)
    except BaseException:
        # The bytes sent count as stored until they are deleted.
        with suppress(ClientError):
            await rest.request("DELETE", f"{_PATH}/{upload.id}", headers=_VERSION)
        raise


async def _begin(rest: Rest, file: Path, size: int) -> StoredUpload:
    kind = mimetypes.guess_type(file.name)[0]
    fields = {"filename": file.name} | ({"filetype": kind} if kind else {})
    metadata = ",".join(
        f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in fields.items()
    )
    headers = {**_VERSION, "Upload-Length": str(size), "Upload-Metadata": metadata}
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            answer = await rest.request("POST", _PATH, headers=headers)
        except ConnectionLostError:
            # If an upload was created after all, the server deletes it after a while.
            if attempt == _ATTEMPTS:
                raise
        else:
            return msgspec.json.decode(answer.content, type=StoredUpload)
    raise AssertionError("the last attempt returns or raises")


async def _send(rest: Rest, file: Path, upload: StoredUpload) -> StoredContent:
    """Send the parts; after a lost response the server reports how much it has."""
    path, offset, failures = f"{_PATH}/{upload.id}", upload.offset, 0
    part_bytes = max(PART_BYTES, -(-upload.length // PARTS))
    while True:
        part = await _part(file, offset, part_bytes)
        headers = {**_VERSION, "Upload-Offset": str(offset), "Content-Type": _PART_TYPE}
        try:
            if offset < upload.length:
                answer = await rest.request("PATCH", path, content=part, headers=headers)
                offset, failures = int(answer.headers["Upload-Offset"]), 0
                if offset < upload.length:
                    continue
        except ConnectionLostError:
            failures += 1
            if failures == _ATTEMPTS:
                raise
        except ClientError as error:
            # The part arrived, but its response was lost.
            if error.code != "wrong_offset":
                raise
        current = await rest.read(path, StoredUpload)
        if current.content is not None:
            return current.content
        if current.offset > offset:
            failures = 0
        offset = current.offset


async def _size(file: Path) -> int:
    try:
        return (await asyncio.to_thread(file.stat)).st_size
    except OSError as error:
        raise _unreadable(file, error) from None


async def _part(file: Path, offset: int, size: int) -> bytes:
    def read() -> bytes:
        with file.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)

    try:
        return await asyncio.to_thread(read)
    except OSError as error:
        raise _unreadable(file, error) from None


def _unreadable(file: Path, error: OSError) -> InvalidRequestError:
    return InvalidRequestError(f"{file}: {error.strerror}.", code="file_not_read")
