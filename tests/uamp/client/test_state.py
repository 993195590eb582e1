"""A client's view of an answer, whatever is sent again: each part once, and no part missing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from uamp.client.errors import (
    ClientError,
    ExportCutError,
    InvalidRequestError,
    OutcomeUnknownError,
    error_of,
)
from uamp.client.exports import check_export
from uamp.client.spending import SpendingPlan
from uamp.client.state.answers import AnswerState, Piece
from uamp.client.state.session import ClientSession
from uamp.client.tools import ClientTool
from uamp.errors import ErrorCode
from uamp.events import (
    ChatMessage,
    ErrorDetail,
    InputText,
    MessageCreated,
    Payment,
    PaymentRequired,
    ResponseCreate,
    ResponseCreated,
    ResponseDone,
    SessionCreated,
    SessionError,
    ToolApprovalRequired,
    text_delta,
)
from uamp.events.payments import PaymentRequirements
from uamp.events.server import ResponseOutput
from uamp.types.content import TextContent
from uamp.types.session import Session, SessionConfig

TEXT = "one twö three"


def done(text: str) -> ResponseDone:
    """Return the end of an answer."""
    output = ResponseOutput(id="r", status="completed", output=(TextContent(text=text),))
    return ResponseDone(response_id="r", response=output)


@pytest.mark.parametrize("shown_count", range(len(TEXT) + 1))
@pytest.mark.parametrize("again", range(len(TEXT) + 1))
def test_repeated_text_is_shown_once(shown_count: int, again: int) -> None:
    answer = AnswerState("r")
    events = [text_delta("r", letter, at) for at, letter in enumerate(TEXT[:shown_count])]
    # After a lost connection: the text so far, which may be less than was shown, then the rest.
    events += [text_delta("r", TEXT[:again], 0)]
    events += [text_delta("r", letter, at) for at, letter in enumerate(TEXT)][again:]
    pieces: list[Piece | None] = [answer.take(event) for event in [*events, done(TEXT)]]

    assert "".join(piece.text for piece in pieces if piece) == TEXT
    assert not any(piece.restarted for piece in pieces if piece)
    assert answer.result().status == "completed"


def test_an_answer_that_was_begun_again_says_so_and_one_that_was_missed_is_whole() -> None:
    answer = AnswerState("r")
    answer.take(text_delta("r", "one two", 0))
    piece = answer.take(text_delta("r", "another", 0))
    assert piece is not None
    assert (piece.text, piece.restarted) == ("another", True)

    missed = AnswerState("r").take(done(TEXT))
    assert missed is not None
    assert missed.text == TEXT


def opened(session: ClientSession, session_id: str, **fields: object) -> None:
    """Give a session its `session.created`."""
    session.begin()
    session.events_to_send()
    created = SessionCreated(session=Session(id=session_id), epoch="e", **fields)  # type: ignore[arg-type]
    session.receive(created)


def test_a_repeated_durable_event_is_taken_once() -> None:
    ids = map(str, itertools.count())
    session = ClientSession(
        chat="chat_1", agent=None, config=SessionConfig(), new_id=lambda: next(ids), now=lambda: 0
    )
    opened(session, "s1", seq=7)
    message = ChatMessage(id="m", role="user", created_at=0)
    event = MessageCreated(chat_id="chat_1", message=message, seq=8)

    assert [session.receive(event), session.receive(event)] == [True, False]
    assert session.seq == 8


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_message_of_a_forgotten_session_is_never_sent_twice(*, is_stored: bool) -> None:
    ids = map(str, itertools.count())
    session = ClientSession(
        chat="chat_1",
        agent=None,
        config=SessionConfig(),
        new_id=lambda: next(ids),
        now=lambda: int(next(ids)),
    )
    opened(session, "s1", seq=7)
    turn = session.ask([InputText(text="hello")], ResponseCreate())
    events = session.events_to_send()
    session.connection_lost()
    # The same session: the same frames again, under the same ids.
    opened(session, "s1", seq=7, resumed=True)
    assert session.events_to_send() == events
    session.connection_lost()
    session.begin()
    (create,) = session.events_to_send()
    details = {"event_id": create.event_id}
    refusal = ErrorDetail(code=ErrorCode.UNKNOWN_SESSION, message="gone", details=details)
    session.receive(SessionError(error=refusal))
    (create,) = session.events_to_send()
    session.receive(SessionCreated(session=Session(id="s2"), epoch="e", seq=8, resumed=True))
    assert not turn.is_complete
    message = ChatMessage(
        id="m",
        role="user",
        created_at=0,
        client_event_id=turn.create.event_id if is_stored else "x",
    )
    session.receive(MessageCreated(chat_id="chat_1", message=message, seq=8))

    resent = {event.event_id for event in session.events_to_send()} & turn.event_ids
    assert resent == set()
    assert isinstance(turn.error, OutcomeUnknownError) is not is_stored
    assert turn.is_stored is is_stored


APPROVAL = ToolApprovalRequired(call_id="c", name="delete_file", arguments="{}", response_id="r")
PAYMENT = PaymentRequired(
    response_id="r", requirements=PaymentRequirements(amount="1", currency="USD", schemes=())
)


def answering() -> ClientSession:
    """Return a session in which the answer ``r`` to its message runs."""
    ids = map(str, itertools.count())
    session = ClientSession(
        chat="chat_1", agent=None, config=SessionConfig(), new_id=lambda: next(ids), now=lambda: 0
    )
    opened(session, "s1", seq=7)
    turn = session.ask([InputText(text="hello")], ResponseCreate())
    message = ChatMessage(id="m", role="user", created_at=0, client_event_id=turn.create.event_id)
    session.receive(MessageCreated(chat_id="chat_1", message=message, seq=8))
    session.receive(ResponseCreated(response_id="r", message_id="m", seq=9))
    session.events_to_send()
    return session


@pytest.mark.parametrize("request_of_server", [APPROVAL, PAYMENT], ids=["approval", "payment"])
def test_a_decision_in_progress_is_not_asked_for_again(
    request_of_server: ToolApprovalRequired | PaymentRequired,
) -> None:
    session = answering()
    session.receive(request_of_server)
    assert session.take_requests() == [request_of_server]
    session.connection_lost()
    opened(session, "s1", seq=9, resumed=True)
    session.receive(request_of_server)

    assert session.take_requests() == []


@pytest.mark.parametrize("is_open", [True, False])
def test_a_decision_that_was_lost_is_sent_again(*, is_open: bool) -> None:
    session = answering()
    session.receive(APPROVAL)
    session.take_requests()
    if not is_open:
        session.connection_lost()
    session.decide(APPROVAL, approved=True)
    events = session.events_to_send()
    assert len(events) == is_open
    session.connection_lost()
    opened(session, "s1", seq=9, resumed=True)
    session.receive(APPROVAL)
    (decision,) = session.events_to_send()

    assert session.take_requests() == []
    assert events in ([], [decision])
    assert session.sent(str(decision.event_id))


def test_nothing_of_a_replaced_log_is_paid_approved_or_cancelled() -> None:
    session = answering()
    session.receive(PAYMENT)
    session.receive(APPROVAL)
    session.take_requests()
    session.pay(PAYMENT, Payment(scheme="balance", network="uamp", amount="1"))
    session.decide(APPROVAL, approved=True)
    session.cancel("r")
    session.connection_lost()
    opened(session, "s1", seq=2, resumed=False)
    # Its turn has failed: the client no longer waits for the answer.
    session.receive(PAYMENT)
    session.receive(APPROVAL)

    assert session.events_to_send() == []
    assert session.take_requests() == []


@pytest.mark.parametrize("is_replaced", [True, False])
def test_consent_given_after_the_end_of_its_answer_is_not_sent(*, is_replaced: bool) -> None:
    session = answering()
    session.receive(PAYMENT)
    session.receive(APPROVAL)
    # A person is asked meanwhile.
    session.take_requests()
    if is_replaced:
        session.connection_lost()
        opened(session, "s1", seq=2, resumed=False)
    else:
        session.receive(done(""))
    session.events_to_send()
    session.pay(PAYMENT, Payment(scheme="balance", network="uamp", amount="1"))
    session.decide(APPROVAL, approved=True)

    assert session.events_to_send() == []
    session.connection_lost()
    opened(session, "s2", seq=2, resumed=True)
    assert session.events_to_send() == []


def test_every_code_of_the_protocol_is_a_typed_error_with_a_remedy() -> None:
    for code in ErrorCode:
        error = error_of(ErrorDetail(code=code, message="said", details={"retry_after": 2}))
        assert (error.code, error.message, error.retry_after) == (code, "said", 2.0)
        assert error.what_to_do
    assert {type(error_of(ErrorDetail(code=code, message=""))).__name__ for code in ErrorCode} == {
        *("ConflictError", "InvalidRequestError", "NotFoundError", "NotPermittedError"),
        *("PaymentRefusedError", "RateLimitError", "UnauthorizedError", "UnavailableError"),
    }


def test_a_tool_is_described_by_its_annotations_and_refuses_what_does_not_fit() -> None:
    def find(words: list[str], limit: int = 3) -> str:
        """Find messages.

        Not for the model.
        """
        return f"{words}{limit}"

    tool = ClientTool(find)
    function = tool.definition.function
    assert function is not None
    assert (function.name, function.description) == ("find", "Find messages.")
    assert function.parameters is not None
    assert function.parameters["required"] == ["words"]
    assert tool.bind('{"words": ["a"]}') == {"words": ["a"], "limit": 3}
    for wrong in ('{"words": "a"}', '{"words": [], "more": 1}', "{"):
        with pytest.raises(ValueError, match="The arguments of find do not fit"):
            tool.bind(wrong)
    with pytest.raises(TypeError, match="needs a name and a type"):
        ClientTool(lambda words: words)


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity", "much", ""])
def test_a_limit_is_an_amount(amount: str) -> None:
    with pytest.raises(InvalidRequestError):
        SpendingPlan(amount)


LINES = [
    b'{"type":"chat","id":"chat_1","title":"Notes"}\n',
    b'{"type":"message","content":"one"}\n',
    b'{"type":"message","content":"two"}\n',
    b'{"type":"end","count":2,"sha256":"4c3f2a"}\n',
]


def test_an_export_is_whole_or_the_place_of_the_damage_is_reported() -> None:
    with pytest.raises(ExportCutError, match="was changed") as changed:
        check_export(LINES)
    assert changed.value.code == "export_changed"
    for cut, message in (
        (3, "2 messages and no last line"),
        (1, "0 messages and no last line"),
        (0, "is empty"),
    ):
        with pytest.raises(ExportCutError, match=message):
            check_export(LINES[:cut])
    with pytest.raises(ExportCutError, match="cut off in line 2"):
        check_export([LINES[0], LINES[1][:-1]])
    with pytest.raises(ExportCutError, match="but states 2"):
        check_export([*LINES[:2], LINES[3]])
    with pytest.raises(ExportCutError, match="not an NDJSON export"):
        check_export([LINES[1]])
    with pytest.raises(ExportCutError, match="continues after its last line"):
        check_export([LINES[0], b'{"type":"end","count":0,"sha256":""}\n', LINES[1]])


@pytest.mark.parametrize(
    ("details", "remedy"),
    [
        ({"retry_after": 3}, "Try again after 3 seconds."),
        ({}, "Try again after a few seconds."),
    ],
)
def test_a_remedy_names_the_seconds_that_the_server_asks_for(
    details: dict[str, Any], remedy: str
) -> None:
    assert ClientError("offline", code="agent_offline", details=details).what_to_do == remedy
