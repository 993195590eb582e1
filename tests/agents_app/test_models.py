"""Rows of agents, and who may see them."""

import time
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from pytest_django import DjangoAssertNumQueries

from agents_app import selectors
from agents_app.models import Agent
from agents_app.selectors import (
    AgentNotFoundError,
    get_agent,
    get_spec,
    list_agents,
    remembered,
    remembered_agent,
)
from tests import factories

pytestmark = pytest.mark.django_db


def agent(name: str = "helper", **values: Any) -> Agent:
    return Agent.objects.create(name=name, **values)


def user(name: str, **values: Any) -> User:
    return User.objects.create_user(name, **values)


@pytest.mark.parametrize("name", ["a", "A.b_c-1", "x" * 64, "9"])
def test_a_name_is_letters_digits_and_three_signs(name: str) -> None:
    Agent(name=name).full_clean()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a b",
        "@a",
        "a/b",
        "..",
        ".a",
        "a.",
        "-a",
        "a\n",
        "ä",
        "a%b",
        "x" * 65,
        "all",
        "Everyone",
    ],
)
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Agent(name=name).full_clean()
    assert list(caught.value.message_dict) == ["name"]


def test_no_agent_takes_the_name_of_another_person_or_of_everyone() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    agent = factories.agent("translator", owner=ada)
    for name in ("bob", "BOB", "here"):
        agent.name = name
        with pytest.raises(ValidationError) as refused:
            agent.full_clean()
        assert "Choose another name" in refused.value.message_dict["name"][0]
    for owner in (None, bob):
        new_agent = Agent(name="ada", owner=owner)
        with pytest.raises(ValidationError):
            new_agent.full_clean()
    # Their own name is theirs, and so is one that an agent had before the person.
    Agent(name="ada", owner=ada).full_clean()
    agent.name = "translator"
    factories.user("translator")
    agent.full_clean()


def test_a_name_is_taken_whatever_its_case() -> None:
    agent("Helper")
    with pytest.raises(ValidationError, match="already an agent with this name"):
        Agent(name="helper").full_clean()
    with pytest.raises(IntegrityError), transaction.atomic():
        agent("HELPER")


@pytest.mark.parametrize(
    "values",
    [
        {"name": ""},
        {"kind": "alien"},
        {"provider": "alien"},
        {"strategy": "dream"},
        {"trigger": "sometimes"},
        {"max_steps": 0},
        {"max_steps": 33},
        {"max_output_tokens": 0},
        {"max_seconds": 0},
        {"history_messages": 0},
    ],
)
def test_the_database_keeps_nonsense_out(values: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Agent.objects.create(**{"name": "helper", **values})


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"options": []}, "options"),
        ({"tools": {}}, "tools"),
        ({"tools": [1]}, "tools"),
        ({"strategy_options": []}, "strategy_options"),
        ({"strategy_options": {"max_plan_steps": 2}}, "strategy_options"),
        ({"strategy": "plan", "strategy_options": {"max_plan_steps": 99}}, "strategy_options"),
    ],
)
def test_json_of_another_shape_is_refused(values: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Agent(name="helper", **values).full_clean()
    assert field in caught.value.message_dict


def test_an_agent_is_shown_by_its_name() -> None:
    row = agent()
    assert str(row) == "helper"
    assert row.id.startswith("agent_")


def test_a_private_agent_is_seen_by_its_owner_and_staff() -> None:
    owner, other, staff = user("owner"), user("other"), user("staff", is_staff=True)
    gone = user("gone", is_staff=True, is_active=False)
    private = agent("private", owner=owner)
    for viewer in (owner, owner.pk, staff, staff.pk):
        visible_agent = get_agent("private", viewer=viewer)
        assert visible_agent is not None
        assert visible_agent.id == private.id
        assert [spec.name for spec in list_agents(viewer)] == ["private"]
    for stranger in (other, other.pk, gone, AnonymousUser(), None):
        assert get_agent("private", viewer=stranger) is None
        assert list_agents(stranger) == []


def test_a_public_agent_is_seen_by_everybody_unless_it_is_switched_off() -> None:
    row = agent("public", is_public=True)
    assert [spec.name for spec in list_agents(None)] == ["public"]
    row.is_enabled = False
    row.save()
    staff = user("staff", is_staff=True)
    assert get_agent("public", viewer=staff) is None
    assert list_agents(staff) == []


@pytest.mark.parametrize("name", ["weather.Bot", "WEATHER.BOT", "\uff57eather.bot"])
def test_a_name_is_found_whatever_its_case_or_width(name: str) -> None:
    agent("Weather.bot", is_public=True)
    named_agent = get_agent(name, viewer=None)
    assert named_agent is not None
    assert named_agent.name == "Weather.bot"


@pytest.mark.parametrize("name", ["", "weather%", "weather/bot", "..", "a\x00b", "weather_bot"])
def test_a_name_that_cannot_be_is_not_found(name: str) -> None:
    agent("weather.bot", is_public=True)
    assert get_agent(name, viewer=None) is None


def test_a_spec_has_what_a_run_needs() -> None:
    owner = user("owner")
    row = agent(
        description="d",
        provider="openai_compat",
        model="m",
        instructions="i",
        options={"a": 1},
        tools=["csv_report"],
        strategy="plan",
        strategy_options={"max_plan_steps": 2},
        owner=owner,
        trigger="always",
        max_steps=5,
        max_output_tokens=1000,
        max_seconds=60,
        history_messages=7,
    )
    spec = get_spec(row.id)
    assert spec == selectors.AgentSpec(
        id=row.id,
        name="helper",
        description="d",
        kind="hosted",
        provider="openai_compat",
        model="m",
        instructions="i",
        options={"a": 1},
        tools=("csv_report",),
        strategy="plan",
        strategy_options={"max_plan_steps": 2},
        is_public=False,
        is_enabled=True,
        owner_id=owner.pk,
        trigger="always",
        max_steps=5,
        max_output_tokens=1000,
        max_seconds=60,
        history_messages=7,
        created_at=int(row.created_at.timestamp()),
    )


def test_a_spec_is_read_once_and_again_after_a_change(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    row = agent()
    assert remembered(row.id) is None
    get_spec(row.id)
    with django_assert_num_queries(0):
        assert get_spec(row.id).description == ""
        assert remembered(row.id) is not None
    row.description = "new"
    row.save()
    assert remembered(row.id) is None
    assert get_spec(row.id).description == "new"


def test_a_remembered_agent_is_found_by_its_name_for_those_who_may_use_it_alone(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    owner, other = user("owner"), user("other")
    public, private = agent("Public", is_public=True), agent("own", owner=owner)
    disguised = agent(public.pk, is_public=True)
    assert remembered_agent("public", user_id=owner.pk) is None
    for row in (public, private, disguised):
        get_spec(row.pk)

    def remembered_id(name: str, user_id: int | None) -> str | None:
        with django_assert_num_queries(0):
            spec = remembered_agent(name, user_id=user_id)
        return None if spec is None else spec.id

    assert remembered_id("PUBLIC", other.pk) == public.pk
    assert (remembered_id("own", owner.pk), remembered_id("own", other.pk)) == (private.pk, None)
    # A query decides for visitors, and which agent an id names.
    assert (remembered_id("public", None), remembered_id(public.pk, owner.pk)) == (None, None)

    public.name = "renamed"
    public.save()
    private.is_enabled = False
    private.save()
    for row in (public, private):
        get_spec(row.pk)
    assert remembered_id("public", owner.pk) is None
    assert remembered_id("own", owner.pk) is None
    assert remembered_id("renamed", other.pk) == public.pk


def test_a_spec_is_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    row = agent()
    get_spec(row.id)
    Agent.objects.update(description="behind the cache")
    assert get_spec(row.id).description == ""
    later = time.monotonic() + selectors.SPEC_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert get_spec(row.id).description == "behind the cache"


def test_a_deleted_agent_is_not_found() -> None:
    row = agent()
    agent_id = row.id
    get_spec(agent_id)
    row.delete()
    with pytest.raises(AgentNotFoundError):
        get_spec(agent_id)
