"""Every row of the error table, provoked on a real socket (uamp.ERROR_CODES).

A refusal has its exact code, leaves the socket open unless its row is fatal, and writes nothing.
"""

import json
from importlib import import_module

import pytest

from tests.live_server import counted_rows
from tests.sessions_app.transports.errors import (  # they fill the table
    refused_events,  # noqa: F401
    refused_frames,  # noqa: F401
)
from tests.sessions_app.transports.errors.model_provider import PROVIDER_FAILURES
from tests.sessions_app.transports.errors.scenes import REFUSED, Scene
from uamp import ERROR_CODES, ErrorCode


@pytest.mark.parametrize("code", REFUSED)
def test_a_refusal_has_its_code_and_changes_nothing(code: ErrorCode, scene: Scene) -> None:
    frame = REFUSED[code](scene)
    client, before = scene.client, counted_rows()
    client.send_raw(frame if isinstance(frame, str | bytes) else json.dumps(frame))
    error = client.until("session.error", "response.error")[-1]
    row = ERROR_CODES[code]
    assert error["error"]["code"] == code
    assert error["type"] in row.event
    assert error["error"]["message"]
    if isinstance(frame, dict) and code not in UNASKED:
        assert error["error"]["details"]["event_id"] == frame["event_id"]
    if row.fatal:
        assert client.close_code() == row.close_code
    else:
        client.settle()
    assert counted_rows() == before


# Sent when its time comes, not in answer to a frame.
UNASKED = {ErrorCode.TOKEN_EXPIRING}
SHOWN_ELSEWHERE = {
    ErrorCode.UNAVAILABLE: (
        "transports.errors.test_failed_answers: unavailable_storage_is_reported_and_keeps_nothing"
    ),
    ErrorCode.AGENT_OFFLINE: (
        "transports.errors.test_failed_answers: an_agent_whose_daemon_is_not_connected_is_offline"
    ),
    ErrorCode.AGENT_DISABLED: (
        "access.test_standing: a_running_answer_ends_with_the_reason_and_what_it_delivered_is_paid"
    ),
    ErrorCode.TIMEOUT: "transports.errors.test_failed_answers: an_answer_that_takes_too_long_ends",
    ErrorCode.TOO_MANY_STEPS: (
        "transports.errors.test_failed_answers: an_agent_that_uses_all_its_steps_ends"
    ),
    ErrorCode.TOO_MANY_HOPS: (
        "transports.errors.test_failed_answers: a_request_that_too_many_servers_passed_on_ends"
    ),
    ErrorCode.ANSWER_TOO_LONG: ("response.test_end_causes: an_answer_that_is_too_long_is_charged"),
    ErrorCode.INVALID_TOOL_RESULT: (
        "response.test_end_causes: a_result_that_the_model_refuses_is_the_clients"
    ),
    ErrorCode.REQUEST_REFUSED: (
        "response.test_end_causes: what_the_client_sent_and_the_model_refuses_late_is_the_clients"
    ),
    ErrorCode.STEP_REFUSED: (
        "response.test_end_causes: a_plan_that_fails_at_the_clients_tool_is_charged"
    ),
    ErrorCode.PROVIDER_ERROR: (
        "transports.errors.test_failed_answers: "
        "a_provider_that_fails_in_mid_answer_leaves_one_error_and_its_text"
    ),
    ErrorCode.PAYMENT_REQUIRED: (
        "billing.test_chat_budgets: an_answer_that_reaches_the_budget_ends_with_what_it_wrote"
    ),
    ErrorCode.PAYMENT_TIMEOUT: "billing.payments.test_asking: an_unpaid_answer_ends",
    ErrorCode.FORBIDDEN: ("transports.test_admission: a_cookie_counts_with_our_own_origin_only"),
    ErrorCode.INTERRUPTED: (
        "process.test_process_death: a_response_whose_process_was_killed_ends_once_with_its_text"
    ),
    ErrorCode.INVALID_OUTPUT: (
        "transports.errors.test_failed_answers: "
        "an_answer_that_does_not_fit_its_schema_ends_in_an_error"
    ),
}


def test_every_code_of_the_table_is_reached_by_a_test() -> None:
    reported = [*REFUSED, *PROVIDER_FAILURES, *SHOWN_ELSEWHERE]
    assert sorted(reported) == sorted(ERROR_CODES)
    for reference in SHOWN_ELSEWHERE.values():
        module, _, name = reference.partition(": ")
        test_module = import_module(f"tests.sessions_app.{module}")
        assert callable(getattr(test_module, f"test_{name}")), reference
