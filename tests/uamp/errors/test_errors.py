"""Errors: every code has a row, and a peer's mistake becomes the right event."""

import pytest

import uamp
from uamp import ERROR_CODES, ErrorCode, RemoteProtocolError
from uamp.errors.http_status import close_code, http_status
from uamp.errors.rows import ErrorRow


def test_every_code_has_one_row_in_order() -> None:
    assert list(ERROR_CODES) == list(ErrorCode)
    assert all(row.code == code for code, row in ERROR_CODES.items())


@pytest.mark.parametrize("row", ERROR_CODES.values(), ids=lambda row: row.code)
def test_a_row_is_whole(row: ErrorRow) -> None:
    assert row.event in {
        "session.error",
        "response.error",
        "session.error | response.error",
    }
    assert row.when.endswith(".")
    assert row.what_to_do.endswith(".")
    assert row.fatal is (row.close_code is not None)


def test_the_codes_of_the_specification_are_there() -> None:
    printed = "agent_offline rate_limited unauthorized timeout rate_limit_exceeded version_mismatch"
    assert set(printed.split()) <= set(ErrorCode)
    assert set(uamp.PaymentErrorCode) == {
        "insufficient_balance",
        "token_expired",
        "token_invalid",
        "payment_failed",
        "rate_limited",
        "mandate_revoked",
    }


def test_an_error_takes_its_end_from_its_row_unless_given() -> None:
    plain = RemoteProtocolError(ErrorCode.UNAUTHORIZED, "no")
    assert (plain.fatal, plain.close_code) == (False, None)
    reported = RemoteProtocolError(ErrorCode.UNAUTHORIZED, "no", fatal=True, close_code=4401)
    assert (reported.fatal, reported.close_code) == (True, 4401)
    version = RemoteProtocolError(ErrorCode.VERSION_MISMATCH, "no")
    assert (version.fatal, version.close_code) == (True, 4426)
    assert str(plain) == "unauthorized: no"


def test_a_session_error_names_the_event_that_it_answers() -> None:
    error = RemoteProtocolError(
        ErrorCode.RATE_LIMITED,
        "slow down",
        event_id="e",
        session_id="s",
        response_id="r",
        details={"retry_after": 3},
    )
    assert error.to_event() == uamp.SessionError(
        session_id="s",
        error=uamp.ErrorDetail(
            code="rate_limited", message="slow down", details={"retry_after": 3, "event_id": "e"}
        ),
    )
    assert error.details == {"retry_after": 3}


def test_an_error_of_a_response_is_a_response_error() -> None:
    error = RemoteProtocolError(ErrorCode.PROVIDER_ERROR, "failed", session_id="s")
    assert error.to_event() == uamp.ResponseError(
        session_id="s", error=uamp.ErrorDetail(code="provider_error", message="failed")
    )


def test_an_error_of_either_kind_follows_its_response() -> None:
    assert isinstance(RemoteProtocolError(ErrorCode.TIMEOUT, "late").to_event(), uamp.SessionError)
    event = RemoteProtocolError(ErrorCode.TIMEOUT, "late", response_id="r").to_event()
    assert event == uamp.ResponseError(
        response_id="r", error=uamp.ErrorDetail(code="timeout", message="late")
    )


def test_every_code_has_an_http_status_that_names_its_kind() -> None:
    statuses = {code: http_status(code) for code in ErrorCode}
    assert statuses[ErrorCode.AGENT_NOT_FOUND] == 404
    assert statuses[ErrorCode.INTERNAL_ERROR] == 500
    assert statuses[ErrorCode.INVALID_EVENT] == 400
    assert set(statuses.values()) == {
        *(400, 401, 402, 403, 404, 409, 413, 429),
        *(500, 502, 503, 504),
    }
    assert close_code(ErrorCode.AGENT_NOT_FOUND) == 4404
