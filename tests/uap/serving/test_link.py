"""Registrations and answers of a daemon, without a socket."""

from itertools import count

import msgspec
import pytest

from uamp.errors import ErrorCode
from uamp.events import (
    ErrorDetail,
    InputText,
    Ping,
    Pong,
    ResponseCancel,
    ResponseError,
    SessionCreate,
    SessionCreated,
    SessionEnd,
    SessionError,
    ToolResult,
)
from uamp.types.capabilities import Capabilities
from uamp.types.session import Session
from uap.serving.link import (
    AgentLink,
    Cancel,
    Refused,
    Registered,
    Registration,
    RequestedAnswer,
    ToolAnswered,
    Work,
    frame_of,
)

CAPABILITIES = Capabilities(id="m", provider="p")


def new_link(*names: str, limit: int = 4) -> AgentLink:
    registrations = {
        name: Registration(name=name, token=f"token-{name}", capabilities=CAPABILITIES)
        for name in names or ("alice",)
    }
    ids = count(1)
    return AgentLink(registrations, max_answers=limit, new_id=lambda: f"id{next(ids)}")


def registered(link: AgentLink) -> None:
    link.begin()
    for create in link.take_events():
        assert isinstance(create, SessionCreate)
        session_id = f"sess_{create.agent}"
        link.receive(
            SessionCreated(
                session_id=session_id, session=Session(id=session_id), agent=create.agent
            )
        )
    link.take_work()


def work_for_input(
    link: AgentLink, session_id: str = "sess_alice", **members: object
) -> list[Work]:
    link.receive(msgspec.convert({"text": "hi", **members, "session_id": session_id}, InputText))
    return link.take_work()


def refused(cause: str | None, code: str, *, session_id: str | None = None) -> SessionError:
    details = {} if cause is None else {"event_id": cause}
    return SessionError(
        session_id=session_id, error=ErrorDetail(code=code, message="no", details=details)
    )


def test_every_agent_registers_with_its_own_token() -> None:
    link = new_link("alice", "bob")

    link.begin()
    creates = link.take_events()

    assert [
        (create.agent, create.token) for create in creates if isinstance(create, SessionCreate)
    ] == [
        ("alice", "token-alice"),
        ("bob", "token-bob"),
    ]


def test_a_registration_has_the_agent_and_the_token_in_its_session() -> None:
    link = new_link()
    link.begin()

    frame = msgspec.json.decode(frame_of(link.take_events()[0], event_id="e", timestamp=5))

    assert frame["session"] == {"modalities": ["text"], "agent": "alice", "token": "token-alice"}
    assert frame["uamp_version"] == "1.0"
    assert (frame["event_id"], frame["timestamp"]) == ("id1", 5)
    assert not {"agent", "token"} & frame.keys()


def test_other_frames_have_the_ids_that_they_lack() -> None:
    frame = msgspec.json.decode(frame_of(Ping(), event_id="e", timestamp=5, session_id="s"))

    assert frame == {"type": "ping", "event_id": "e", "timestamp": 5, "session_id": "s"}


def test_agents_are_registered_in_any_order() -> None:
    link = new_link("alice", "bob")
    link.begin()

    link.receive(SessionCreated(session=Session(id="s2", agent="bob")))
    link.receive(SessionCreated(session=Session(id="s1")))
    link.receive(SessionCreated(session=Session(id="s3")))

    assert link.take_work() == [Registered(agent="bob"), Registered(agent="alice")]
    assert link.registered == {"alice", "bob"}
    assert link.sessions == ("s2", "s1")


@pytest.mark.parametrize(("code", "again"), [("internal_error", 5.0), ("forbidden", None)])
def test_a_refused_registration_is_tried_again_where_that_may_help(
    code: str, again: float | None
) -> None:
    link = new_link()
    link.begin()

    link.receive(refused("id1", code))
    (work,) = link.take_work()

    assert isinstance(work, Refused)
    assert (work.agent, work.again_after, work.error.code) == ("alice", again, code)


def test_an_error_of_something_else_refuses_no_agent() -> None:
    link = new_link()
    registered(link)

    link.receive(refused("other", "forbidden", session_id="sess_alice"))
    link.receive(refused(None, "forbidden"))

    assert link.take_work() == []
    assert link.registered == {"alice"}


def test_a_session_that_ends_later_is_refused_then() -> None:
    link = new_link("alice", "bob")
    registered(link)

    link.receive(refused(None, "token_expired", session_id="sess_alice"))
    link.receive(SessionEnd(session_id="sess_bob"))
    link.receive(SessionEnd(session_id="unknown"))
    expired, ended = link.take_work()

    assert isinstance(expired, Refused)
    assert (expired.agent, expired.again_after) == ("alice", None)
    assert isinstance(ended, Refused)
    assert (ended.agent, ended.again_after) == ("bob", 5.0)
    assert link.registered == set()


def test_an_input_of_a_session_is_for_its_agent() -> None:
    link = new_link("alice", "bob")
    registered(link)

    (work,) = work_for_input(link, "sess_bob")

    assert isinstance(work, RequestedAnswer)
    assert (work.agent, work.session_id, work.input.text) == ("bob", "sess_bob", "hi")
    assert work.response_id.startswith("resp_")


def test_an_input_of_a_session_of_one_turn_names_its_agent() -> None:
    link = new_link("alice", "bob")
    registered(link)

    (work,) = work_for_input(link, "turn_1", agent="bob")

    assert isinstance(work, RequestedAnswer)
    assert (work.agent, work.session_id) == ("bob", "turn_1")


def test_the_answers_of_an_agents_session_run_side_by_side() -> None:
    link = new_link()
    registered(link)

    first, second = work_for_input(link)[0], work_for_input(link)[0]

    assert isinstance(first, RequestedAnswer)
    assert isinstance(second, RequestedAnswer)
    assert first.response_id != second.response_id


def test_a_second_input_of_a_session_of_one_turn_takes_the_place_of_the_first() -> None:
    link = new_link()
    registered(link)
    (first,) = work_for_input(link, "turn_1", agent="alice")
    assert isinstance(first, RequestedAnswer)

    cancel, second = work_for_input(link, "turn_1", agent="alice")

    assert cancel == Cancel(response_id=first.response_id)
    assert isinstance(second, RequestedAnswer)


def test_an_input_for_no_agent_is_refused() -> None:
    link = new_link()
    registered(link)

    assert work_for_input(link, "unknown", agent="mallory") == []
    (error,) = link.take_events()

    assert isinstance(error, ResponseError)
    assert (error.session_id, error.error.code) == ("unknown", ErrorCode.AGENT_NOT_FOUND)


def test_more_answers_than_are_at_work_and_wait_are_refused() -> None:
    link = new_link(limit=1)
    registered(link)
    (first,) = work_for_input(link)
    assert isinstance(first, RequestedAnswer)
    assert work_for_input(link)

    assert work_for_input(link) == []
    (error,) = link.take_events()

    assert isinstance(error, ResponseError)
    assert error.error.code == ErrorCode.BUSY

    link.ended(first.response_id)

    assert work_for_input(link)


def test_a_draining_daemon_takes_nothing_more() -> None:
    link = new_link()
    registered(link)
    link.is_draining = True

    assert work_for_input(link) == []
    (error,) = link.take_events()

    assert isinstance(error, ResponseError)
    assert error.error.code == ErrorCode.AGENT_OFFLINE


@pytest.mark.parametrize(
    "event",
    [
        ResponseCancel(session_id="sess_alice"),
        ResponseError(
            session_id="sess_alice", error=ErrorDetail(code="answer_too_long", message="")
        ),
    ],
)
def test_a_cancelled_session_ends_all_its_answers(event: ResponseCancel | ResponseError) -> None:
    link = new_link("alice", "bob")
    registered(link)
    mine = [work for _ in range(2) for work in work_for_input(link)]
    work_for_input(link, "sess_bob")

    link.receive(event)

    ids = [work.response_id for work in mine if isinstance(work, RequestedAnswer)]
    assert link.take_work() == [Cancel(response_id=response_id) for response_id in ids]


def test_a_cancelled_response_ends_alone() -> None:
    link = new_link()
    registered(link)
    (_,), (second,) = work_for_input(link), work_for_input(link)
    assert isinstance(second, RequestedAnswer)

    link.receive(ResponseCancel(session_id="sess_alice", response_id=second.response_id))

    assert link.take_work() == [Cancel(response_id=second.response_id)]


@pytest.mark.parametrize(
    "event",
    [
        ResponseCancel(session_id="turn_1", response_id="resp_of_server"),
        ResponseError(
            session_id="turn_1",
            response_id="resp_of_server",
            error=ErrorDetail(code="answer_too_long", message=""),
        ),
    ],
)
def test_a_cancelled_turn_ends_by_its_session_whatever_its_response_is_called(
    event: ResponseCancel | ResponseError,
) -> None:
    link = new_link()
    registered(link)
    (first,) = work_for_input(link, "turn_1", agent="alice")
    work_for_input(link, "turn_2", agent="alice")
    assert isinstance(first, RequestedAnswer)

    link.receive(event)

    assert link.take_work() == [Cancel(response_id=first.response_id)]


def test_a_cancelled_response_ends_alone_while_the_daemon_drains() -> None:
    link = new_link()
    registered(link)
    (_,), (second,) = work_for_input(link), work_for_input(link)
    assert isinstance(second, RequestedAnswer)
    link.is_draining = True
    link.leave()
    link.receive(ResponseCancel(session_id="sess_alice", response_id=second.response_id))
    assert link.take_work() == [Cancel(response_id=second.response_id)]


def test_a_cancelled_response_of_another_agent_leaves_an_agents_session_alone() -> None:
    link = new_link()
    registered(link)
    work_for_input(link)

    link.receive(ResponseCancel(session_id="sess_alice", response_id="resp_other"))

    assert link.take_work() == []


def test_a_lost_connection_ends_the_answers_and_the_sessions() -> None:
    link = new_link()
    registered(link)
    (answer,) = work_for_input(link)
    assert isinstance(answer, RequestedAnswer)

    link.connection_lost()

    assert link.take_work() == [Cancel(response_id=answer.response_id)]
    assert link.registered == set()


def test_a_ping_is_answered_and_other_events_are_not() -> None:
    link = new_link()

    link.receive(Ping(event_id="p1"))
    link.receive(Pong())

    assert link.take_events() == [Pong(reply_to="p1")]


def test_a_daemon_that_leaves_ends_its_sessions() -> None:
    link = new_link("alice", "bob")
    registered(link)

    link.leave()

    assert link.take_events() == [
        SessionEnd(session_id="sess_alice"),
        SessionEnd(session_id="sess_bob"),
    ]
    assert link.registered == set()


def test_the_result_of_a_tool_goes_to_the_answer_of_its_session() -> None:
    link = new_link()
    registered(link)
    (first,) = work_for_input(link, "turn1", agent="alice")
    work_for_input(link, "turn2", agent="alice")
    assert isinstance(first, RequestedAnswer)

    result = ToolResult(session_id="turn1", call_id="c1", result="1")
    link.receive(result)
    assert link.take_work() == [ToolAnswered(response_id=first.response_id, result=result)]
    link.ended(first.response_id)
    link.receive(result)
    assert link.take_work() == []
