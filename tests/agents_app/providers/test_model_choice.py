"""The model of a new server's assistant, chosen from the lists of real servers on the wire."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from agents_app.demo import prepare_agents
from agents_app.models import Agent
from agents_app.providers.model_choice import ChosenModel, NoModelError, choose_model
from tests import services
from tests.threads import join_threads

NAMES = [
    f"{vendor}_{what}"
    for vendor in ("OPENAI", "ANTHROPIC", "GOOGLE")
    for what in ("API_KEY", "BASE_URL", "MODEL")
]


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


class Listing:
    """A server that lists models: where it is, what it says, and what it was asked."""

    def __init__(self, answer: object, status: int = 200) -> None:
        self.said, self.status = answer, status
        self.url = ""
        self.asked: list[tuple[str, dict[str, str]]] = []


@contextmanager
def listing(answer: object, status: int = 200) -> Iterator[Listing]:
    """Serve a list of models."""
    reported = Listing(answer, status)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reported.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
            body = (
                reported.said
                if isinstance(reported.said, bytes)
                else json.dumps(reported.said).encode()
            )
            self.send_response(reported.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        reported.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield reported
        finally:
            server.shutdown()
            join_threads([thread])


OLLAMA = {"data": [{"id": "nomic-embed-text"}, {"id": "llama3.2:3b"}, {"id": "qwen3"}]}


def test_nothing_is_chosen_where_nothing_is_configured() -> None:
    assert choose_model() is None


def test_openai_itself_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert choose_model() == ChosenModel(provider="openai_compat", model="gpt-4o-mini")


def test_a_named_model_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor, provider in (
        ("GOOGLE", "google"),
        ("ANTHROPIC", "anthropic"),
        ("OPENAI", "openai_compat"),
    ):
        monkeypatch.setenv(f"{vendor}_BASE_URL", f"http://127.0.0.1:{services.free_port()}")
        monkeypatch.setenv(f"{vendor}_MODEL", "mine")
        assert choose_model() == ChosenModel(provider=provider, model="mine")


def test_a_compatible_server_without_a_key_gives_its_first_model_that_chats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with listing(OLLAMA) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1/")
        assert choose_model() == ChosenModel(provider="openai_compat", model="llama3.2:3b")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        choose_model()
    [(path, without), (_, with_key)] = server.asked
    assert path == "/v1/models"
    assert "authorization" not in without
    assert with_key["authorization"] == "Bearer key"


def test_anthropic_is_asked_with_its_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    with listing({"data": [{"id": "claude-x", "type": "model"}]}) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        for path in ("", "/v1"):
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url + path)
            assert choose_model() == ChosenModel(provider="anthropic", model="claude-x")
    assert {path for path, _ in server.asked} == {"/v1/models"}
    assert server.asked[0][1]["x-api-key"] == "key"
    assert server.asked[0][1]["anthropic-version"]


def test_google_is_asked_for_models_that_generate(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [
        {"name": "models/embedding-001", "supportedGenerationMethods": ["embedContent"]},
        {"name": "models/gemini-x", "supportedGenerationMethods": ["generateContent"]},
    ]
    with listing({"models": models}) as server:
        monkeypatch.setenv("GOOGLE_API_KEY", "key")
        monkeypatch.setenv("GOOGLE_BASE_URL", server.url)
        assert choose_model() == ChosenModel(provider="google", model="gemini-x")
    assert server.asked[0][0] == "/v1beta/models"
    assert server.asked[0][1]["x-goog-api-key"] == "key"


@pytest.mark.parametrize(
    ("answer", "status", "what"),
    [
        ({"data": []}, 200, "lists no model that chats"),
        ({"data": [{"id": "text-embedding-3"}]}, 200, "lists no model that chats"),
        ({"error": "sk-secret"}, 401, "answered 401"),
        (b"<html>sk-secret", 200, "gave no list of models"),
        ({"models": "sk-secret"}, 200, "gave no list of models"),
        ({"data": [7]}, 200, "gave no list of models"),
    ],
)
def test_a_list_without_a_model_is_explained_to_the_operator(
    answer: object, status: int, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listing(answer, status) as server:
        place = server.url.removeprefix("http://")
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:sk-secret@{place}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        with pytest.raises(NoModelError) as caught:
            choose_model()
    assert str(caught.value).startswith(f"{server.url}/v1/models {what}. ")
    assert "name a model in OPENAI_MODEL" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}/v1", "no address", "http://[::"])
def test_an_unreachable_server_is_reported(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address.format(port=services.free_port()))
    with pytest.raises(NoModelError, match="did not answer"):
        choose_model()


@pytest.mark.django_db
def test_the_assistant_says_what_to_do_and_takes_the_model_once_it_is_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{services.free_port()}/v1")
    with caplog.at_level(logging.WARNING):
        prepare_agents()
    assistant = Agent.objects.get(name="assistant")
    assert (assistant.provider, assistant.options) == ("scripted", {"script": "guide"})
    assert "did not answer. Start that server" in assistant.description
    assert "The assistant has no model: " in caplog.text
    with listing(OLLAMA) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        prepare_agents()
    assistant.refresh_from_db()
    assert (assistant.provider, assistant.model) == ("openai_compat", "llama3.2:3b")
    assert assistant.tools == ["csv_report", "fetch_page", "search_chat"]
    assistant.full_clean()
    # The server is away again: the assistant keeps its model, and says so when it is asked.
    prepare_agents()
    assistant.refresh_from_db()
    assert (assistant.provider, assistant.model) == ("openai_compat", "llama3.2:3b")
