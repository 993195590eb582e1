"""The trial of an agent in the admin: what an operator sees, who may, and what is left of it."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from agents_app.models import Agent, ModelProvider
from audit_app.models import AuditRecord
from tests import factories
from tests.agents_app.runtime.invalid_calls import call_tool, provider, say
from tests.live_server import counted_rows, quick_agent
from tests.sessions_app.model_server import model_server, text_chunks
from tests.threads import join_threads
from tests.upp.wire_server import STREAM_HEAD, Exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_django import Settings

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_trials() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def operator(*permissions: str) -> User:
    user = factories.user("operator", is_staff=True)
    for name in permissions:
        user.user_permissions.add(
            Permission.objects.get(codename=name, content_type__app_label="agents_app")
        )
    return user


def signed_in(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def address(agent: Agent) -> str:
    return reverse("admin:agents_app_agent_try", args=[agent.pk])


def test_an_operator_finds_the_trial_and_asks(admin_client: Client, admin_user: User) -> None:
    agent = quick_agent("parrot", "echo")
    change = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    assert address(agent) in admin_client.get(change).content.decode()
    assert "Prompt" in admin_client.get(address(agent)).content.decode()
    before = counted_rows()
    response = admin_client.post(address(agent), {"prompt": "two <b>words</b>"})
    assert response.status_code == 200
    trial = response.context["trial"]
    assert [item["type"] for item in trial.output] == ["text"]
    assert (trial.error, trial.model, trial.steps) == ("", "echo", 1)
    assert trial.usage.output_tokens == 2
    page = response.content.decode()
    assert "two &lt;b&gt;words&lt;/b&gt;" in page
    assert response["Cache-Control"].startswith("max-age=0")
    assert counted_rows() == before
    [entry] = LogEntry.objects.all()
    assert (entry.user, entry.object_id) == (admin_user, agent.pk)
    assert entry.change_message.startswith("Tried it: 1 steps, ")
    assert "words" not in entry.change_message


def test_a_probe_asks_the_model_for_one_word_and_is_recorded(admin_client: Client) -> None:
    with model_server(text_chunks("ready")) as model:
        agent = model.agent(tools=["csv_report"], instructions="A secret.", max_steps=5)
        page = admin_client.post(address(agent), {"probe": "1"})
    trial = page.context["trial"]
    assert [item["text"] for item in trial.output] == ["ready"]
    assert trial.seconds > 0
    (body,) = model.requests
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert "tools" not in body
    assert 64 in body.values()
    record = AuditRecord.objects.get()
    assert (record.action, record.object_id) == ("agent.probed", agent.pk)
    assert record.detail == "Probed it."


def test_the_way_back_to_the_agent_is_found_whatever_its_id(admin_client: Client) -> None:
    # The admin reads _26 in an address as a quoted sign.
    agent = Agent.objects.create(id="agent_26", name="parrot", options={"script": "echo"})
    page = admin_client.get(address(agent)).content.decode()
    change = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    assert f'<a href="{change}">' in page
    assert admin_client.get(change).status_code == 200


def test_an_agent_that_is_switched_off_can_be_tried(admin_client: Client) -> None:
    agent = quick_agent("parrot", "echo")
    Agent.objects.filter(pk=agent.pk).update(is_enabled=False)
    response = admin_client.post(address(agent), {"prompt": "hello"})
    assert response.context["trial"].output[0]["text"] == "hello"


@pytest.mark.parametrize("prompt", ["", " ", "x" * 32_001])
def test_an_invalid_prompt_is_refused(admin_client: Client, prompt: str) -> None:
    response = admin_client.post(address(quick_agent("parrot", "echo")), {"prompt": prompt})
    assert response.context["trial"] is None
    assert response.context["form"].errors["prompt"]
    assert not LogEntry.objects.exists()


def test_a_trial_that_takes_too_long_is_stopped(admin_client: Client, settings: Settings) -> None:
    settings.UAMP_TRIAL_SECONDS = 0.3
    response = admin_client.post(address(quick_agent("counter", "slow")), {"prompt": "Count"})
    trial = response.context["trial"]
    assert (trial.code, trial.error) == ("timeout", "The trial took too long and was stopped.")
    assert trial.output[0]["text"].startswith("word1 word2")
    assert "Tried it: it failed (timeout)" in LogEntry.objects.get().change_message


def test_more_trials_than_allowed_are_refused(admin_client: Client, settings: Settings) -> None:
    settings.UAMP_TRIALS_PER_MINUTE = 2
    agent = quick_agent("parrot", "echo")
    responses = [admin_client.post(address(agent), {"prompt": "a"}) for _ in range(5)]
    # The minute may have changed in between: three are in one of the two.
    assert max(response.status_code for response in responses) == 429
    refused = next(response for response in responses if response.status_code == 429)
    assert "You have run 2 trials in a minute." in refused.content.decode()
    assert refused.context["trial"] is None


def test_only_operators_with_the_right_may_try() -> None:
    agent = quick_agent("parrot", "echo")
    person = factories.user("person")
    for client in (Client(), signed_in(person)):
        for response in (client.get(address(agent)), client.post(address(agent), {"prompt": "a"})):
            assert response.status_code == 302
            assert response["Location"].startswith(reverse("admin:login"))
    without = operator("view_agent", "change_agent")
    client = signed_in(without)
    for refused in (client.get(address(agent)), client.post(address(agent), {"prompt": "a"})):
        assert refused.status_code == 403
        assert "does not have permission to do this" in refused.content.decode()
    change = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    assert address(agent) not in client.get(change).content.decode()
    without.user_permissions.add(Permission.objects.get(codename="try_agent"))
    assert client.post(address(agent), {"prompt": "a"}).status_code == 200
    absent = reverse("admin:agents_app_agent_try", args=["agent_absent"])
    assert client.get(absent).status_code == 404
    User.objects.filter(pk=without.pk).update(is_active=False)
    assert client.get(address(agent)).status_code == 302


def test_a_trial_needs_the_token_of_its_form() -> None:
    agent = quick_agent("parrot", "echo")
    client = signed_in(operator("try_agent"), enforce_csrf_checks=True)
    assert client.post(address(agent), {"prompt": "a"}).status_code == 403
    assert not LogEntry.objects.exists()


# --- With a model, on the real server ---


def model_agent(url: str, *tools: str, **options: Any) -> Agent:
    return Agent.objects.create(
        name="model",
        provider=ModelProvider.OPENAI_COMPAT,
        model="m",
        options={"base_url": url, **options},
        tools=list(tools),
    )


def browser(server: ServerAddress, user: User) -> httpx.Client:
    """Return a signed-in browser."""
    session = signed_in(user).cookies["sessionid"].value
    cookies = {"sessionid": session, "csrftoken": "a" * 32}
    headers = {"X-CSRFToken": "a" * 32}
    return httpx.Client(
        base_url=server.http, cookies=cookies, headers=headers, timeout=20, trust_env=False
    )


def test_tool_calls_are_shown_and_long_tools_are_not_run(server: ServerAddress) -> None:
    async def answer(exchange: Exchange) -> None:
        last = exchange.body["messages"][-1]
        if last["role"] == "tool":
            await say(exchange, "It could not.")
        else:
            await call_tool(exchange, "csv_report", '{"content_id": "x"}')

    with provider(answer) as wire, browser(server, operator("try_agent")) as web:
        agent = model_agent(wire.url, "csv_report")
        page = web.post(address(agent), data={"prompt": "Report"}).text
    assert "<strong>Calls csv_report</strong>" in page
    assert (
        "csv_report is a long-running tool and is not run in a trial. Ask the agent in a chat."
        in page
    )
    assert "It could not." in page
    assert '<th scope="row">Input tokens</th><td>17</td>' in page


def test_an_operator_reads_what_the_provider_said_but_no_key(
    server: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIAL_API_KEY", "sk-very-private")

    async def answer(exchange: Exchange) -> None:
        error = b'{"message": "No model m for sk-very-private", "code": "model_not_found"}'
        await exchange.refuse("404 Not Found", b'{"error": ' + error + b"}")

    with provider(answer) as wire, browser(server, operator("try_agent")) as web:
        agent = model_agent(wire.url, api_key_env="TRIAL_API_KEY")
        page = web.post(address(agent), data={"prompt": "Hello"}).text
    assert "sk-very-private" in wire.exchanges[0].head
    assert "The agent&#x27;s model does not exist." in page
    assert "HTTP 404: No model m for ***" in page
    assert "private" not in page


def test_what_a_failed_trial_said_and_used_is_shown(server: ServerAddress) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="Half an")

    with provider(answer) as wire, browser(server, operator("try_agent")) as web:
        page = web.post(address(model_agent(wire.url)), data={"prompt": "Hello"}).text
    assert "Half an" in page
    assert "The connection to the model was lost." in page
    assert "The answer was cut off before its end." in page


def records_when_asked(
    server: ServerAddress, user: User, address_of: Callable[[Agent], str], data: dict[str, Any]
) -> list[tuple[str, str]]:
    """Post a trial; return what the audit has of it by the time that the model is asked."""
    model_asked, goes_on = threading.Event(), threading.Event()

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        model_asked.set()
        await asyncio.to_thread(goes_on.wait, 15)
        await exchange.finish()

    with provider(answer) as wire, browser(server, user) as web:
        data = {**data, "options__base_url": wire.url} if "name" in data else data
        url = address_of(model_agent(wire.url))
        thread = threading.Thread(target=lambda: web.post(url, data=data))
        thread.start()
        try:
            assert model_asked.wait(10)
            return list(AuditRecord.objects.values_list("action", "detail"))
        finally:
            goes_on.set()
            join_threads([thread])


@pytest.mark.parametrize(
    ("data", "detail"), [({"prompt": "Hello"}, "Tried it."), ({"probe": "1"}, "Probed it.")]
)
def test_a_trial_is_recorded_before_it_begins(
    server: ServerAddress, data: dict[str, Any], detail: str
) -> None:
    """An operator who disconnects ends it, and leaves nothing that could record it later."""
    records = records_when_asked(server, operator("try_agent"), address, data)
    assert records == [("agent.probed", detail)]


def test_a_wait_for_a_model_delays_no_other_person(server: ServerAddress) -> None:
    model_asked, goes_on = threading.Event(), threading.Event()

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="late")
        model_asked.set()
        await asyncio.to_thread(goes_on.wait, 15)
        await exchange.finish()

    user = operator("try_agent", "view_agent")
    pages: list[str] = []
    with provider(answer) as wire, browser(server, user) as web, browser(server, user) as other:
        agent = model_agent(wire.url)
        thread = threading.Thread(
            target=lambda: pages.append(web.post(address(agent), data={"prompt": "Hello"}).text)
        )
        thread.start()
        assert model_asked.wait(10)
        listed = other.get(reverse("admin:agents_app_agent_changelist"))
        assert listed.status_code == 200
        assert not pages
        goes_on.set()
        join_threads([thread])
    assert "late" in pages[0]
