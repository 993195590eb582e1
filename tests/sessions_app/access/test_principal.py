"""The kind of a principal, by its key: agents and peers are not visitors, even without a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sessions_app import selectors, services
from sessions_app.access import auth, rates
from sessions_app.access.principal import Principal, PrincipalKind
from sessions_app.models import Session
from tests import factories
from uamp import events as ev
from uamp.types.session import SessionConfig

if TYPE_CHECKING:
    from pytest_django import Settings

    from sessions_app.records import OpenSession

PEER = Principal(key=PrincipalKind.PEER.key("other.example"), address="192.0.2.1")
AGENT = Principal(key=PrincipalKind.AGENT.key("helper"), address="192.0.2.1")


def opened(principal: Principal, session_id: str | None = None) -> OpenSession:
    """Open a session of a principal."""
    return services.open_session(
        principal=principal,
        transport="websocket",
        create=ev.SessionCreate(session=SessionConfig(id=session_id)),
        agent_name="echo",
        chat_id=None,
    )


def test_a_kind_is_read_from_the_key() -> None:
    visitor = auth.anonymous(address="192.0.2.1")
    person = Principal(key=PrincipalKind.PERSON.key(7), user_id=7)
    kinds = [principal.kind for principal in (person, visitor, AGENT, PEER)]
    assert kinds == list(PrincipalKind)
    assert [p.is_visitor for p in (person, visitor, AGENT, PEER)] == [False, True, False, False]
    with pytest.raises(ValueError, match="nothing"):
        _ = Principal(key="nothing").kind


def test_agents_and_peers_are_counted_by_themselves_and_visitors_by_address() -> None:
    counted = [p.counted_as for p in (auth.anonymous(address="192.0.2.1"), AGENT, PEER)]
    assert counted == [rates.visitors("192.0.2.1"), "agent:helper", "peer:other.example"]


def test_a_peer_has_the_limits_of_a_person(settings: Settings) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 1
    settings.UAMP_ANONYMOUS_RESPONSES_PER_MINUTE = 0
    limiter = rates.RateLimiter()
    assert limiter.hit("responses", PEER.counted_as).allowed
    assert not limiter.hit("responses", rates.visitors(PEER.address)).allowed


@pytest.mark.django_db
@pytest.mark.parametrize("principal", [AGENT, PEER])
def test_the_session_of_an_agent_or_peer_is_open_to_itself_alone(
    principal: Principal, settings: Settings
) -> None:
    settings.UAMP_ALLOW_ANONYMOUS = False
    factories.agent("echo")
    session = opened(principal, "standing")
    assert session.wire_id == "standing"
    row = Session.objects.get()
    assert (row.user, row.principal) == (None, principal.key)
    assert selectors.find_session("standing", principal) is not None
    # What a visitor would need: the id of the row, which opens sessions of visitors.
    assert selectors.anonymous_session_principal(row.pk) is None
