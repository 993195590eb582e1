"""Media in every spelling of base64 that clients write, by every protocol that carries some."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pytest
from PIL import Image

from chat_app.contents import storage
from chat_app.models import Content
from gateway_app.realtime.input_sound import InputSound
from sessions_app.models import Response
from tests.client import TERMINAL
from tests.gateway_app.a2a.calls import call, old_message, text_message
from tests.gateway_app.acp.test_one_shot import call as call_acp
from tests.gateway_app.completions.requests import ask
from tests.gateway_app.openai_responses.requests import respond
from tests.gateway_app.realtime.client import realtime
from uamp import RemoteProtocolError

if TYPE_CHECKING:
    import httpx

    from tests.gateway_app.realtime.client import Realtime
    from tests.live_server import Dial, Person

__all__ = ["realtime"]

Send = Callable[[str], Any]


def picture(color: int) -> bytes:
    """Return a PNG whose base64 has both signs that differ between the alphabets, and padding."""
    for side in range(1, 200):
        file = io.BytesIO()
        image = Image.new("RGB", (side, 5), (color, side, 99))
        image.putpixel((0, 0), (side, color, 7))
        image.save(file, "PNG")
        text = base64.b64encode(file.getvalue()).decode()
        if {"+", "/", "="} <= set(text):
            return file.getvalue()
    raise AssertionError(color)


def _lines(text: str) -> str:
    return "\r\n".join(text[start : start + 76] for start in range(0, len(text), 76)) + "\n"


def _for_urls(text: str) -> str:
    return text.replace("+", "-").replace("/", "_")


BARE: Final[dict[str, Callable[[str], str]]] = {
    "as encoded": str,
    "lines": _lines,
    "without padding": lambda text: text.rstrip("="),
    "for URLs": _for_urls,
    "for URLs without padding": lambda text: _for_urls(text).rstrip("="),
    "white space": lambda text: f" {text}\t",
}
URLS: Final[dict[str, Callable[[str], str]]] = {
    "url": "data:image/png;base64,{}".format,
    "capitals": "DATA:image/png;BASE64,{}".format,
    "mixed": "Data:Image/PNG;Base64,{}".format,
    "parameters": "data:image/png;charset=utf-8;base64,{}".format,
    "escapes": lambda text: f"data:image/png;base64,{quote(text, safe='')}",
    "lines in a url": lambda text: f"data:image/png;base64,{_lines(text)}",
    "for URLs in a url": lambda text: f"data:image/png;base64,{_for_urls(text).rstrip('=')}",
    "escaped text": lambda text: f"data:image/png,{quote(base64.b64decode(text))}",
}
GARBAGE: Final = (
    "!!!!",
    "QUI%3D",
    "QUJDé",
    "data:image/png;base64,!!!!",
    "data:image/png;base64",
    "data:image/png;base64,QU=UI",
)


def _completions(web: httpx.Client, who: Person, part: dict[str, Any]) -> Any:
    return ask(web, "echo", {"messages": [{"role": "user", "content": [part]}]}, who)


def _image_url(web: httpx.Client, who: Person, text: str) -> Any:
    return _completions(web, who, {"type": "image_url", "image_url": {"url": text}})


def _file_data(web: httpx.Client, who: Person, text: str) -> Any:
    file = {"file_data": text, "filename": "a.png"}
    return _completions(web, who, {"type": "file", "file": file})


def _responses(web: httpx.Client, who: Person, part: dict[str, Any]) -> Any:
    return respond(web, "echo", {"input": [{"role": "user", "content": [part]}]}, who)


def _input_image(web: httpx.Client, who: Person, text: str) -> Any:
    return _responses(web, who, {"type": "input_image", "image_url": text})


def _input_file(web: httpx.Client, who: Person, text: str) -> Any:
    part = {"type": "input_file", "file_data": text, "filename": "a.png"}
    return _responses(web, who, part)


def _ag_ui(part: dict[str, Any], web: httpx.Client, who: Person) -> Any:
    messages = [{"id": "m1", "role": "user", "content": [part]}]
    body = {"threadId": "t1", "runId": "r1", "messages": messages}
    return web.post("/agents/echo/agui", json=body, headers=who.headers)


def _ag_ui_data(web: httpx.Client, who: Person, text: str) -> Any:
    source = {"type": "data", "value": text, "mimeType": "image/png"}
    return _ag_ui({"type": "image", "source": source}, web, who)


def _ag_ui_document(web: httpx.Client, who: Person, text: str) -> Any:
    kind = "url" if text.lower().startswith("data:") else "data"
    return _ag_ui({"type": "document", "source": {"type": kind, "value": text}}, web, who)


def _ag_ui_binary(web: httpx.Client, who: Person, text: str) -> Any:
    return _ag_ui({"type": "binary", "mimeType": "image/png", "data": text}, web, who)


def _a2a(web: httpx.Client, who: Person, text: str) -> Any:
    message = text_message("", parts=[{"raw": text, "mediaType": "image/png"}])
    return call(web, "echo", "SendMessage", {"message": message}, who=who)


def _a2a_old(web: httpx.Client, who: Person, text: str) -> Any:
    file = {"bytes": text, "mimeType": "image/png", "name": "a.png"}
    message = old_message("", parts=[{"kind": "file", "file": file}])
    return call(web, "echo", "message/send", {"message": message}, who=who)


def _a2a_old_rest(web: httpx.Client, who: Person, text: str) -> Any:
    message = text_message("", content=[{"file": {"fileWithBytes": text, "mimeType": "image/png"}}])
    del message["parts"]
    path = "/agents/echo/a2a/rest/v1/message:send"
    return web.post(path, json={"message": message}, headers=who.headers)


def _a2a_spec(web: httpx.Client, who: Person, text: str) -> Any:
    file = {"bytes": text, "mimeType": "image/png"}
    message = {"role": "user", "parts": [{"type": "file", "file": file}]}
    return web.post("/agents/echo/tasks", json={"message": message}, headers=who.headers).text


def _acp(web: httpx.Client, who: Person, text: str) -> Any:
    image = {"type": "image", "image": text, "format": "png"}
    messages = [{"role": "user", "content": "", "content_items": [image]}]
    return call_acp(web, "echo", "prompt/submit", who, messages=messages)


HTTP: Final = {
    "completions image_url": _image_url,
    "completions file": _file_data,
    "responses input_image": _input_image,
    "responses input_file": _input_file,
    "ag-ui data": _ag_ui_data,
    "ag-ui document": _ag_ui_document,
    "ag-ui binary": _ag_ui_binary,
    "a2a 1.0 raw": _a2a,
    "a2a 0.3 bytes": _a2a_old,
    "a2a 0.3 rest": _a2a_old_rest,
    "a2a tasks": _a2a_spec,
    "acp prompt/submit": _acp,
}


def stored_spellings(send: Send) -> dict[str, bool]:
    """Send a picture in each spelling; return whether it was stored as its own bytes."""
    stored = {}
    for color, (name, spell) in enumerate({**BARE, **URLS}.items()):
        data = picture(color)
        send(spell(base64.b64encode(data).decode()))
        stored[name] = any(storage.read(content) == data for content in Content.objects.all())
    return stored


def refused_garbage(send: Send) -> None:
    """Send what is no base64: nothing of it is stored or answered."""
    before = Response.objects.count()
    for text in GARBAGE:
        answer = send(text)
        body = answer if isinstance(answer, str | list | dict) else answer.text
        assert "invalid_media" in str(body) or "CONTENT_TYPE_NOT_SUPPORTED" in str(body), body
    assert (Response.objects.count(), Content.objects.count()) == (before, 0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", HTTP)
def test_every_spelling_of_a_medium_over_http(web: httpx.Client, alice: Person, way: str) -> None:
    send = partial(HTTP[way], web, alice)
    refused_garbage(send)
    stored = stored_spellings(send)
    assert stored == dict.fromkeys(stored, True)


def _input(kind: str, member: str, **fields: str) -> Callable[[str], list[dict[str, Any]]]:
    def events(text: str) -> list[dict[str, Any]]:
        return [{"type": f"input.{kind}", member: text, **fields}]

    return events


def _history(text: str) -> list[dict[str, Any]]:
    part = {"type": "image_url", "image_url": {"url": text}}
    message = {"role": "user", "content": [part]}
    return [{"type": "response.create", "response": {"messages": [message]}}]


UAMP: Final[dict[str, Callable[[str], list[dict[str, Any]]]]] = {
    "input.image": _input("image", "image"),
    "input.file": _input("file", "file", filename="a.png", mime_type="image/png"),
    "a history": _history,
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", UAMP)
def test_every_spelling_of_a_medium_in_uamp(dial: Dial, alice: Person, way: str) -> None:
    client = dial(alice)
    client.create_session(agent="echo")

    def send(text: str) -> Any:
        # A bare text in the place of a URL is the path of a picture, and no data.
        if way == "a history" and not text.strip().lower().startswith("data:"):
            text = f"data:image/png;base64,{text}"
        for event in UAMP[way](text):
            client.send(event["type"], **{k: v for k, v in event.items() if k != "type"})
        if way != "a history":
            client.send("response.create")
        return client.until("session.error", *TERMINAL)[-1]

    refused_garbage(send)
    stored = stored_spellings(send)
    assert stored == dict.fromkeys(stored, True)


def test_pieces_of_sound_in_different_spellings_are_one(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    pieces = ["SUQz-_8", "SUQz+/8=\n", "DATA:audio/mpeg;base64,SUQz%2B_8"]
    for piece in pieces:
        client.send("input.audio", audio=piece, format="mp3")
    client.send("response.create")
    client.until(*TERMINAL)
    assert storage.read(Content.objects.get()) == b"ID3\xfb\xff" * 3


@pytest.mark.parametrize("spelling", [*BARE, *URLS])
def test_sound_of_realtime(spelling: str) -> None:
    data = picture(3)
    sound = InputSound(100_000)
    text = base64.b64encode(data).decode()
    sound.append({**BARE, **URLS}[spelling](text))
    assert sound.size == len(data)
    for garbage in GARBAGE:
        with pytest.raises(RemoteProtocolError) as refused:
            sound.append(garbage)
        assert refused.value.code == "invalid_media"
    assert sound.size == len(data)


def test_a_picture_of_realtime(realtime: Realtime, alice: Person) -> None:
    client = realtime("v1/realtime?model=echo", alice)

    def send(text: str) -> None:
        parts = [{"type": "input_image", "image_url": text}]
        item = {"type": "message", "role": "user", "content": parts}
        client.send("conversation.item.create", item=item)
        client.until("conversation.item.done")
        client.send("response.create")
        client.until("response.done")

    stored = stored_spellings(send)
    assert stored == dict.fromkeys(stored, True)
