"""The question that a signature binds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.uamp.signatures.test_signatures import ANSWER, QUESTION, published, signed
from uamp.signatures import (
    check_answer,
    request_of,
    sha256_of,
)

pytestmark = pytest.mark.any_database


@pytest.mark.parametrize(
    ("question", "request_state"),
    [
        (None, "absent"),
        ({**QUESTION, "id": "msg_other"}, "absent"),
        ({**QUESTION, "content": "Wie spat?"}, "changed"),
        ({**QUESTION, "content_items": 7}, "changed"),
        ({**QUESTION, "content": "Wann?", "edited_at": "2026-11-25T12:00:00Z"}, "edited"),
        ({**QUESTION, "content": "", "deleted_at": "2026-11-25T12:00:00Z"}, "erased"),
    ],
)
def test_the_question_is_compared_too(question: dict[str, Any] | None, request_state: str) -> None:
    message = {**ANSWER, "signature": signed()}
    verdict = check_answer(message, published(), question=question)
    assert (verdict.state, verdict.request) == ("valid", request_state)
    assert verdict.is_good is (request_state != "changed")


def test_the_salt_of_the_question_is_covered() -> None:
    salted = {**QUESTION, "salt": "qXq1Vd0vN5x2bV9Jm3Yw7A"}
    message = {**ANSWER, "signature": signed(request_hash=sha256_of(request_of(salted)))}
    states = {
        salt: check_answer(message, published(), question={**QUESTION, "salt": salt}).request
        for salt in (salted["salt"], "another", "", None, 7)
    }
    assert states.pop(salted["salt"]) == "same"
    assert set(states.values()) == {"changed"}
