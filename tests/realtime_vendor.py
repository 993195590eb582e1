"""A stand-in for a vendor's Realtime API: the wire format of OpenAI's GA version, without a model.

It measures the audio it receives, and answers with a tone of 40 ms per word. `answers` are its next
answers, the last of which repeats: words, a tool call, or a failure.
"""

from __future__ import annotations

import base64
import json
import math
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from agents_app.models import Agent, ModelProvider
from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from websockets.http11 import Request
    from websockets.http11 import Response as Answer

Shown = dict[str, Any]
KEY = "sk-vendor"
RATE = 24_000
WORD_MS = 40
# Bytes per millisecond, by format.
_BYTES = {"audio/pcm": 48, "audio/pcmu": 8, "audio/pcma": 8}
_SILENCE = {"audio/pcm": b"\0", "audio/pcmu": b"\xff", "audio/pcma": b"\xd5"}


def tone(ms: int, *, format: str = "audio/pcm") -> bytes:  # noqa: A002 - the member's name
    """Return a tone of 440 Hz in a format; in telephone formats, it is merely loud."""
    if format != "audio/pcm":
        return b"\x10\x90" * (ms * _BYTES[format] // 2)
    samples = (
        int(12_000 * math.sin(2 * math.pi * 440 * n / RATE)) for n in range(ms * RATE // 1000)
    )
    return b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples)


def silence(ms: int, *, format: str = "audio/pcm") -> bytes:  # noqa: A002 - as above
    """Return silence in a format."""
    return _SILENCE[format] * (ms * _BYTES[format])


@dataclass(frozen=True)
class Call:
    """An answer that calls a tool."""

    name: str
    arguments: str = "{}"


@dataclass(frozen=True)
class Fault:
    """An answer that fails; `kind` is error, failed, close, binary, huge, cancelled or silent."""

    kind: str
    error: Shown = field(default_factory=lambda: {"code": "server_error", "message": "It broke."})
    words: str = "Half an"


@dataclass(frozen=True)
class Raw:
    """An answer of exactly these frames and nothing else."""

    frames: tuple[str, ...]


def make_agent(url: str, name: str = "speaker", **fields: Any) -> Agent:
    """Create a public agent answered by the vendor at an address."""
    options = {"base_url": url, **fields.pop("options", {})}
    defaults = {"provider": ModelProvider.OPENAI_REALTIME, "model": "gpt-realtime"}
    return Agent.objects.create(
        name=name, is_public=True, **{**defaults, **fields}, options=options
    )


class RealtimeVendor:
    """The vendor's answers, the data it received, and its open sockets."""

    def __init__(self, *answers: str | Call | Fault | Raw) -> None:
        self.answers: list[str | Call | Fault | Raw] = list(answers) or ["You are welcome"]
        self.url = ""
        self.received: list[Shown] = []
        self.keys: list[str | None] = []
        self.models: list[str] = []
        self.responses = 0
        self.closed = threading.Semaphore(0)
        # While cleared, an answer stops after its first word.
        self.go_on = threading.Event()
        self.go_on.set()
        # When the transcript of the input is sent: first, late (after the answer), or it fails.
        self.transcript = "first"
        # The usage to report instead of the actual one.
        self.usage: Shown | None = None

    def sent(self, kind: str) -> list[Shown]:
        """Return the events of a type that it received."""
        return [event for event in self.received if event["type"] == kind]

    @property
    def session(self) -> Shown:
        """The last session that it received."""
        session: Shown = self.sent("session.update")[-1]["session"]
        return session

    def agent(self, name: str = "speaker", **fields: Any) -> Agent:
        """Create a public agent that it answers."""
        return make_agent(self.url, name, **fields)


class _Talk:
    """One socket of a client."""

    def __init__(self, vendor: RealtimeVendor, socket: ServerConnection) -> None:
        self._vendor = vendor
        self._socket = socket
        self._session: Shown = {}
        self._buffer = b""
        self._is_speaking = False
        self._quiet_ms = 0
        self._total_ms = 0
        self._items = 0
        self._said = ""

    def send(self, kind: str, **members: Any) -> None:
        """Send an event."""
        event = {"event_id": f"event_{len(self._vendor.received)}", "type": kind, **members}
        self._socket.send(json.dumps(event))

    def leave(self) -> None:
        """Close the socket."""
        self._socket.close()

    def run(self) -> None:
        """Answer the client until it leaves."""
        self.send("session.created", session={"type": "realtime", "model": "gpt-realtime"})
        for frame in self._socket:
            event: Shown = json.loads(frame)
            self._vendor.received.append(event)
            self._take(event)

    def _take(self, event: Shown) -> None:
        match event["type"]:
            case "session.update":
                self._session = event["session"]
                self.send("session.updated", session=self._session)
            case "conversation.item.create":
                item = {"id": self._new_item(), **event["item"]}
                for part in item.get("content", ()):
                    self._said = part.get("text") or self._said
                self.send("conversation.item.added", previous_item_id=None, item=item)
                self.send("conversation.item.done", previous_item_id=None, item=item)
            case "input_audio_buffer.append":
                self._append(base64.b64decode(event["audio"]))
            case "input_audio_buffer.clear":
                self._buffer = b""
                self.send("input_audio_buffer.cleared")
            case "input_audio_buffer.commit":
                self._commit()
            case "response.create":
                self._respond()

    # --- Input ---

    @property
    def _input(self) -> Shown:
        audio_input: Shown = self._session.get("audio", {}).get("input", {})
        return audio_input

    def _ms(self, samples: bytes) -> int:
        return len(samples) // _BYTES[self._input["format"]["type"]]

    def _append(self, samples: bytes) -> None:
        detection = self._input.get("turn_detection")
        was_at = self._total_ms
        self._total_ms += self._ms(samples)
        if detection is None:
            self._buffer += samples
            return
        is_loud = samples.strip(_SILENCE[self._input["format"]["type"]]) != b""
        if is_loud and not self._is_speaking:
            self._is_speaking, self._buffer = True, b""
            self.send(
                "input_audio_buffer.speech_started",
                audio_start_ms=was_at,
                item_id=f"item_{self._items + 1}",
            )
        if self._is_speaking:
            self._buffer += samples
        self._quiet_ms = 0 if is_loud else self._quiet_ms + self._ms(samples)
        if self._is_speaking and self._quiet_ms >= detection.get("silence_duration_ms", 500):
            self._is_speaking = False
            self.send(
                "input_audio_buffer.speech_stopped",
                audio_end_ms=self._total_ms,
                item_id=f"item_{self._items + 1}",
            )
            self._commit()

    def _commit(self) -> None:
        if not self._buffer:
            error = {"code": "input_audio_buffer_commit_empty", "message": "It is empty."}
            self.send("error", error={"type": "invalid_request_error", **error})
            return
        item_id, ms = self._new_item(), self._ms(self._buffer)
        self._said, self._buffer = f"a sound of {ms} ms", b""
        part = {"type": "input_audio", "transcript": None}
        item = {"id": item_id, "type": "message", "role": "user", "content": [part]}
        self.send("input_audio_buffer.committed", previous_item_id=None, item_id=item_id)
        self.send("conversation.item.added", previous_item_id=None, item=item)
        self.send("conversation.item.done", previous_item_id=None, item=item)
        if self._vendor.transcript == "first":
            self._transcribe(item_id)

    def _transcribe(self, item_id: str) -> None:
        if not self._input.get("transcription"):
            return
        kind = "conversation.item.input_audio_transcription"
        place = {"item_id": item_id, "content_index": 0}
        if self._vendor.transcript == "failed":
            self.send(f"{kind}.failed", **place, error={"message": "Not understood."})
            return
        self.send(f"{kind}.delta", **place, delta=self._said)
        usage = {"type": "tokens", "input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
        self.send(f"{kind}.completed", **place, transcript=self._said, usage=usage)

    def _new_item(self) -> str:
        self._items += 1
        return f"item_{self._items}"

    # --- Answers ---

    def _respond(self) -> None:
        vendor = self._vendor
        answer = vendor.answers[min(vendor.responses, len(vendor.answers) - 1)]
        vendor.responses += 1
        place = {"response_id": f"resp_{vendor.responses}"}
        self.send("response.created", response={"id": place["response_id"]})
        match answer:
            case Call():
                self._call(place, answer)
            case Fault():
                self._fail(place, answer)
            case Raw():
                for frame in answer.frames:
                    self._socket.send(frame)
                return
            case str():
                spoken = self._say(place, answer.replace("{said}", self._said))
                self._done("completed", words=len(answer.split()), spoken=spoken)
        if vendor.transcript != "first":
            self._transcribe("item_1")

    def _say(self, place: Shown, words: str) -> int:
        """Speak words, and return how many milliseconds they took."""
        item = {"id": self._new_item(), "type": "message", "role": "assistant", "content": []}
        at = {**place, "item_id": item["id"], "output_index": 0, "content_index": 0}
        speaks = self._session["output_modalities"] == ["audio"]
        kind = "response.output_audio_transcript" if speaks else "response.output_text"
        output = self._session.get("audio", {}).get("output", {})
        form = output.get("format", {}).get("type", "audio/pcm")
        self.send("response.output_item.added", **place, output_index=0, item=item)
        for index, word in enumerate(words.split()):
            self.send(f"{kind}.delta", **at, delta=word if index == 0 else f" {word}")
            if speaks:
                data = base64.b64encode(tone(WORD_MS, format=form)).decode()
                self.send("response.output_audio.delta", **at, delta=data)
            self._vendor.go_on.wait(30)
        if speaks:
            self.send("response.output_audio.done", **at)
            self.send(f"{kind}.done", **at, transcript=words)
        self.send("response.output_item.done", **place, output_index=0, item=item)
        return WORD_MS * len(words.split()) if speaks else 0

    def _call(self, place: Shown, call: Call) -> None:
        number = self._vendor.responses
        item = {"id": self._new_item(), "type": "function_call", "call_id": f"call_{number}"}
        item |= {"name": call.name, "arguments": call.arguments}
        self.send("response.output_item.added", **place, output_index=0, item=item)
        self.send("response.output_item.done", **place, output_index=0, item=item)
        self._done("completed", words=4, spoken=0)

    def _fail(self, place: Shown, fault: Fault) -> None:
        self._say(place, fault.words)
        match fault.kind:
            case "error":
                self.send("error", error=fault.error)
            case "close":
                self._socket.close(1011, "broken")
            case "binary":
                self._socket.send(b"\0")
            case "huge":
                self._socket.send(" " * (5 * 1024 * 1024))
            case "nonsense":
                self._socket.send('{"type": 1}')
            case "noise":
                self.send("response.output_audio.delta", **place, delta="no base64")
            case "silent":
                return
            case kind:
                reason, _, status = kind.rpartition(" of ")
                details = {"reason": reason or None, "error": fault.error}
                self._done(status, words=2, spoken=0, details=details)

    def _done(self, status: str, *, words: int, spoken: int, details: Shown | None = None) -> None:
        sound = spoken // 20
        usage = {
            "input_tokens": 30,
            "output_tokens": words + sound,
            "total_tokens": 30 + words + sound,
            "input_token_details": {
                "text_tokens": 10,
                "audio_tokens": 20,
                "cached_tokens": 6,
                "cached_tokens_details": {"text_tokens": 2, "audio_tokens": 4},
            },
            "output_token_details": {"text_tokens": words, "audio_tokens": sound},
        }
        used = self._vendor.usage or usage
        response = {"status": status, "status_details": details, "usage": used}
        self.send("response.done", response=response)


@contextmanager
def realtime_vendor(*answers: str | Call | Fault | Raw) -> Iterator[RealtimeVendor]:
    """Run a vendor that gives these answers, one per response."""
    vendor = RealtimeVendor(*answers)

    def admit(socket: ServerConnection, request: Request) -> Answer | None:
        vendor.keys.append(request.headers.get("Authorization"))
        vendor.models.append(request.path.partition("model=")[2])
        if vendor.models[-1] == "moved":
            answer = socket.respond(HTTPStatus.FOUND, "")
            answer.headers["Location"] = f"{vendor.url}/realtime?model=gpt-realtime"
            return answer
        if vendor.keys[-1] not in {None, f"Bearer {KEY}"}:
            return socket.respond(HTTPStatus.UNAUTHORIZED, "")
        return None

    def handle(socket: ServerConnection) -> None:
        try:
            _Talk(vendor, socket).run()
        except ConnectionClosed:
            return
        finally:
            vendor.closed.release()

    with serve(
        handle, "127.0.0.1", 0, process_request=admit, max_size=2**24, compression=None
    ) as server:
        vendor.url = f"http://127.0.0.1:{server.socket.getsockname()[1]}/v1"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield vendor
        finally:
            vendor.go_on.set()
            server.shutdown()
            join_threads([thread])
