"""Transcripts over REST: who may ask, what is sent to the transcription server, and how often."""

from __future__ import annotations

import io
import json
import wave
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from chat_app.contents import quota, reading_rights, storage
from chat_app.contents.measures import UNMEASURED
from chat_app.models import Chat, Content, Transcript
from chat_app.transcripts import tasks, transcripts
from tests import factories
from tests.http_server import LocalServer, QuietHandler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

pytestmark = pytest.mark.django_db


def sound(seconds: float = 0.1) -> bytes:
    """Return a WAV file of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes(b"\0\0" * int(8000 * seconds))
    return file.getvalue()


class TranscriptionServer(LocalServer):
    """A stand-in for OpenAI's `audio/transcriptions`, which remembers its requests."""

    def __init__(self) -> None:
        self.received: list[tuple[str, str, bytes]] = []
        self.answer: tuple[int, bytes] = (200, json.dumps({"text": " Hello there. "}).encode())
        server = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 the interface's
                length = int(self.headers.get("Content-Length", 0))
                authorization = self.headers.get("Authorization", "")
                server.received.append((self.path, authorization, self.rfile.read(length)))
                status, body = server.answer
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Handler)


@pytest.fixture
def server(settings: Settings) -> Iterator[TranscriptionServer]:
    """Give a transcription server."""
    with serving(TranscriptionServer()) as running:
        settings.UAMP_TRANSCRIPTION_URL = f"{running.origin}/v1/"
        settings.UAMP_TRANSCRIPTION_KEY = "a-key"
        settings.UAMP_TRANSCRIPTION_MODEL = "a-model"
        yield running


@pytest.fixture
def ada() -> User:
    """Return a person."""
    return factories.user("ada")


@pytest.fixture
def chat(ada: User) -> Chat:
    """Return a chat of ada and bob."""
    return factories.chat(ada, factories.user("bob"))


def voice_note(chat: Chat, *, user_id: int | None, seconds: float = 0.1) -> Content:
    """Return a voice note of a person, or of the chat's agents, in a chat."""
    key = "" if user_id is not None else f"chat:{chat.pk}"
    stored = storage.store(
        sound(seconds),
        mime_type="audio/wav",
        filename="note.wav",
        owner=quota.ContentOwner(user_id=user_id, key=key),
    )
    reading_rights.use(chat.pk, [str(stored.pk)])
    return stored


@pytest.fixture
def note(ada: User, chat: Chat) -> Content:
    """Return a voice note of ada in the chat."""
    return voice_note(chat, user_id=ada.pk)


class Listener:
    """A person who reads transcripts; a worker works after each answer."""

    def __init__(
        self,
        person: User,
        capture: DjangoCaptureOnCommitCallbacks,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.client = Client()
        self.client.force_login(person)
        self.capture = capture
        monkeypatch.setattr(
            tasks.transcribe, "apply_async", lambda kwargs, **_: tasks.transcribe(**kwargs)
        )

    def ask(self, content: Content, status: int = 200) -> Any:
        """Ask what is said in a sound."""
        with self.capture(execute=True):
            answer = self.client.post(f"/api/v1/contents/{content.pk}/transcript")
        assert answer.status_code == status, answer.content
        return answer.json()


@pytest.fixture
def listener(
    ada: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    monkeypatch: pytest.MonkeyPatch,
) -> Listener:
    """Return ada as a reader of transcripts."""
    return Listener(ada, django_capture_on_commit_callbacks, monkeypatch)


def test_a_sound_is_written_down_once(
    server: TranscriptionServer, note: Content, listener: Listener
) -> None:
    assert listener.ask(note) == {"state": "asked", "text": ""}
    for _ in range(2):
        assert listener.ask(note) == {"state": "done", "text": "Hello there."}
    ((path, authorization, body),) = server.received
    assert (path, authorization) == ("/v1/audio/transcriptions", "Bearer a-key")
    assert b"a-model" in body
    assert b'filename="note.wav"' in body
    assert sound() in body


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "answer",
    [
        (500, b"{}"),
        (200, b"no json"),
        (200, b'{"text": 7}'),
        (200, b'{"text": "  "}'),
        (200, b"[]"),
        (200, b'{"text": "' + b"x" * tasks.ANSWER_BYTES + b'"}'),
    ],
    ids=["error", "words", "number", "empty", "list", "large"],
)
def test_a_server_without_a_text_is_asked_again_later(
    server: TranscriptionServer, note: Content, listener: Listener, answer: tuple[int, bytes]
) -> None:
    server.answer = answer
    listener.ask(note)
    for _ in range(2):
        assert listener.ask(note) == {"state": "none", "text": ""}
    assert len(server.received) == 1
    server.answer = (200, b'{"text": "At last"}')
    Transcript.objects.update(
        created_at=timezone.now() - transcripts.FAILURE_RETRY - timedelta(seconds=1)
    )
    assert listener.ask(note)["state"] == "asked"
    assert listener.ask(note)["text"] == "At last"


def test_a_server_that_is_away_gives_no_transcript(
    note: Content, listener: Listener, settings: Settings
) -> None:
    settings.UAMP_TRANSCRIPTION_URL = "http://127.0.0.1:9"
    listener.ask(note)
    assert listener.ask(note)["state"] == "none"


def test_what_is_lost_on_the_way_is_asked_for_again(
    server: TranscriptionServer, note: Content, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_given: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(tasks.transcribe, "apply_async", fail)
        assert listener.ask(note)["state"] == "asked"
    assert listener.ask(note)["state"] == "asked"
    assert server.received == []
    Transcript.objects.update(
        created_at=timezone.now() - transcripts.REQUEST_RETRY - timedelta(seconds=1)
    )
    listener.ask(note)
    assert listener.ask(note)["state"] == "done"


def test_only_who_may_hear_it_reads_it(
    server: TranscriptionServer, ada: User, note: Content, listener: Listener, settings: Settings
) -> None:
    listener.client.force_login(factories.user("mallory"))
    listener.ask(note, status=404)
    listener.client.logout()
    assert listener.client.post(f"/api/v1/contents/{note.pk}/transcript").status_code == 401
    listener.client.force_login(ada)
    settings.UAMP_TRANSCRIPTS_PER_MINUTE = 0
    listener.ask(note, status=429)
    settings.UAMP_TRANSCRIPTS_PER_MINUTE = 60
    settings.UAMP_TRANSCRIPTION_URL = ""
    assert listener.ask(note) == {"state": "none", "text": ""}
    assert server.received == []
    assert not Transcript.objects.exists()


def test_recordings_of_a_person_have_a_limit_of_a_day(
    server: TranscriptionServer, ada: User, chat: Chat, listener: Listener, settings: Settings
) -> None:
    settings.UAMP_TRANSCRIPT_SECONDS_PER_DAY = 5
    bob = chat.participants.exclude(user=ada).get().user_id
    first, second = (voice_note(chat, user_id=bob, seconds=seconds) for seconds in (3, 2.5))
    assert listener.ask(first)["state"] == "asked"
    refused = listener.ask(second, status=429)
    assert refused["code"] == "rate_limit_exceeded"
    assert not Transcript.objects.filter(content=second).exists()
    # What exists is still read, and Bob's recordings do not count for Ada, who views them.
    assert listener.ask(first)["state"] == "done"
    of_person, of_agent = (
        voice_note(chat, user_id=ada.pk, seconds=2),
        voice_note(chat, user_id=None),
    )
    for content in (of_person, of_agent):
        assert listener.ask(content)["state"] == "asked"
    assert len(server.received) == 3
    longer = voice_note(chat, user_id=None, seconds=4)
    listener.ask(longer, status=429)
    assert len(server.received) == 3


def test_a_recording_that_is_sent_once_counts_once(
    server: TranscriptionServer,
    ada: User,
    chat: Chat,
    listener: Listener,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.UAMP_TRANSCRIPT_SECONDS_PER_DAY = 5
    note = voice_note(chat, user_id=ada.pk, seconds=2.9)
    is_busy = transcripts._is_busy

    def view_too(*arguments: Any) -> bool:
        # Someone else views it at the same moment.
        monkeypatch.setattr(transcripts, "_is_busy", is_busy)
        assert listener.client.post(f"/api/v1/contents/{note.pk}/transcript").status_code == 200
        return is_busy(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(tasks.transcribe, "apply_async", lambda **_: None)
        monkeypatch.setattr(transcripts, "_is_busy", view_too)
        assert listener.ask(note)["state"] == "asked"
    # No worker has sent it.
    Transcript.objects.update(
        created_at=timezone.now() - transcripts.REQUEST_RETRY - timedelta(seconds=1)
    )
    assert listener.ask(note)["state"] == "asked"
    assert len(server.received) == 1
    assert listener.ask(voice_note(chat, user_id=ada.pk, seconds=1.9))["state"] == "asked"
    listener.ask(voice_note(chat, user_id=ada.pk, seconds=0.9), status=429)
    assert len(server.received) == 2


def test_a_recording_that_is_sent_again_after_a_failure_counts_again(
    server: TranscriptionServer, ada: User, chat: Chat, listener: Listener, settings: Settings
) -> None:
    settings.UAMP_TRANSCRIPT_SECONDS_PER_DAY = 5
    note = voice_note(chat, user_id=ada.pk, seconds=3)
    server.answer = (500, b"{}")
    listener.ask(note)
    earlier = timezone.now() - transcripts.FAILURE_RETRY - timedelta(seconds=1)
    Transcript.objects.update(created_at=earlier)
    listener.ask(note, status=429)
    row = Transcript.objects.get()
    assert (row.state, row.created_at) == ("none", earlier)
    assert len(server.received) == 1


def test_a_recording_longer_than_the_limit_takes_all_of_it(
    server: TranscriptionServer, ada: User, chat: Chat, listener: Listener, settings: Settings
) -> None:
    settings.UAMP_TRANSCRIPT_SECONDS_PER_DAY = 2
    assert listener.ask(voice_note(chat, user_id=ada.pk, seconds=3))["state"] == "asked"
    listener.ask(voice_note(chat, user_id=ada.pk, seconds=1), status=429)
    assert len(server.received) == 1
    settings.UAMP_TRANSCRIPT_SECONDS_PER_DAY = 0
    listener.ask(voice_note(chat, user_id=None), status=429)


def test_a_recording_of_unknown_length_counts_by_its_bytes(note: Content) -> None:
    assert transcripts.seconds_of(note) == 1
    note.size_bytes = 7001
    assert transcripts.seconds_of(note) == 1
    for note.extent in (None, UNMEASURED):
        assert transcripts.seconds_of(note) == 2


def test_a_few_recordings_of_a_person_are_sent_at_once(
    server: TranscriptionServer,
    ada: User,
    chat: Chat,
    listener: Listener,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        # The worker is busy with what it is given.
        patch.setattr(tasks.transcribe, "apply_async", lambda **_: None)
        for number in range(transcripts.UNDER_WAY):
            listener.ask(voice_note(chat, user_id=ada.pk, seconds=1 + number))
    waiting = voice_note(chat, user_id=ada.pk, seconds=0.5)
    assert listener.ask(waiting) == {"state": "asked", "text": ""}
    assert not Transcript.objects.filter(content=waiting).exists()
    of_agent = voice_note(chat, user_id=None)
    listener.ask(of_agent)
    assert listener.ask(of_agent)["state"] == "done"
    assert len(server.received) == 1
    transcripts.keep(str(Transcript.objects.filter(state="asked")[0].pk), "said")
    listener.ask(waiting)
    assert listener.ask(waiting)["state"] == "done"


def test_other_files_and_large_sounds_are_not_sent(
    server: TranscriptionServer,
    ada: User,
    note: Content,
    listener: Listener,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listener.ask(factories.content(ada), status=404)
    monkeypatch.setattr(transcripts, "SOUND_BYTES", 10)
    listener.ask(note, status=404)
    assert server.received == []


def test_the_text_has_a_bound_and_goes_with_its_sound(
    server: TranscriptionServer, note: Content, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "TEXT_CHARS", 5)
    server.answer = (200, json.dumps({"text": "a\0cdefgh"}).encode())
    listener.ask(note)
    assert listener.ask(note)["text"] == "a\ufffdcde"
    note.delete()
    assert not Transcript.objects.exists()
