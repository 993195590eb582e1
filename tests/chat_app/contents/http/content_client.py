"""A person who uploads and reads files over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def upload(client: Client, data: bytes, *, name: str, mime_type: str) -> Any:
    file = SimpleUploadedFile(name, data, content_type=mime_type)
    return client.post("/api/v1/contents", {"file": file})


def body_of(response: Any) -> bytes:
    return b"".join(response.streaming_content)
