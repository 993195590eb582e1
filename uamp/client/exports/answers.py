"""Verifies the signatures of the answers and receipts in an export (docs/signatures.md).

The keys are those that the caller supplies, or those at the end of the file. Keys from the file
show only that its answers and keys belong together: an author of a whole file can sign with their
own keys.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from uamp.logs.check import CheckTable, CheckTables, in_memory
from uamp.signatures import SignatureCheck, check_answer, check_receipt, with_question

PROBLEMS_MAX: Final = 100
"""The maximum number of problems listed; `problem_count` counts all of them."""

_SIGNED_MEMBERS: Final = (
    "id",
    "role",
    "name",
    "content",
    "content_items",
    "response_id",
    "status",
    "signature",
    "stored_output_hash",
    "stored_usage_hash",
    "edited_at",
    "deleted_at",
    "salt",
    "receipt",
)


class AnswerProblem(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, question or receipt that does not match its signature; `detail` says why."""

    message_id: str
    detail: str


class ExportedAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking the signatures of an export.

    ``states`` counts the answers, and ``receipts`` the receipts of answers and of work passed on,
    by state (`uamp.signatures.SignatureState`). ``keys_given`` says whether the keys came from the
    caller rather than from the file.
    """

    states: dict[str, int]
    receipts: dict[str, int]
    problem_count: int
    problems: tuple[AnswerProblem, ...]
    keys_given: bool


class ExportedAnswersCheck:
    """Collects the messages of an export in ``tables`` and verifies their signatures at the end."""

    def __init__(
        self,
        chat_id: str,
        keys: Iterable[Mapping[str, Any]] = (),
        *,
        tables: CheckTables = in_memory,
    ) -> None:
        self._chat_id = chat_id
        self._keys = tuple(keys)
        self._messages: CheckTable[dict[str, Any]] = tables(dict[str, Any])
        self._is_signed = False

    def add_message(self, message: Mapping[str, Any]) -> None:
        """Add a message as the export has it."""
        signed = {name: message[name] for name in _SIGNED_MEMBERS if name in message}
        self._messages[str(message.get("id", ""))] = signed
        self._is_signed = self._is_signed or "signature" in signed or "receipt" in signed

    @property
    def message_count(self) -> int:
        """The number of messages with different ids."""
        return len(self._messages)

    def finish(self, own_keys: Any = None) -> ExportedAnswers | None:
        """Return the result, using the file's keys if needed; None if nothing is signed."""
        if not self._is_signed:
            return None
        keys = self._keys or _objects(own_keys)
        states: Counter[str] = Counter()
        receipts: Counter[str] = Counter()
        problem_count = 0
        problems: list[AnswerProblem] = []
        for message_id, message in self._messages.items():
            details = []
            for receipt, answer in _receipts(message):
                check = check_receipt(receipt, keys, chat_id=self._chat_id, message=answer)
                receipts[check.state] += 1
                if not check.is_good:
                    details.append(f"Its receipt: {check.detail}")
            if _is_answer(message):
                verdict = self._verdict(message, keys)
                states[verdict.state] += 1
                if not verdict.is_good:
                    details.append(_detail_of(verdict))
            problem_count += len(details)
            if len(problems) < PROBLEMS_MAX:
                problems += [
                    AnswerProblem(message_id=message_id, detail=detail) for detail in details
                ]
        return ExportedAnswers(
            states=dict(states),
            receipts=dict(receipts),
            problem_count=problem_count,
            problems=tuple(problems[:PROBLEMS_MAX]),
            keys_given=bool(self._keys),
        )

    def _verdict(
        self, message: Mapping[str, Any], keys: Iterable[Mapping[str, Any]]
    ) -> SignatureCheck:
        verdict = check_answer(message, keys, chat_id=self._chat_id)
        request_id = None if verdict.claims is None else verdict.claims.request_id
        question = None if request_id is None else self._messages.get(request_id)
        return verdict if question is None else with_question(verdict, question)


def _is_answer(message: Mapping[str, Any]) -> bool:
    return "signature" in message or bool(message.get("response_id"))


def _receipts(
    message: Mapping[str, Any],
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """Yield the receipt of an answer with the answer, and the receipts of work passed on."""
    receipt = message.get("receipt")
    if not isinstance(receipt, dict):
        return
    yield receipt, message
    for work in _objects(receipt.get("delegated")):
        yield work, None


def _detail_of(verdict: SignatureCheck) -> str:
    if verdict.request == "changed":
        return f"{verdict.detail} The question differs from the one that was answered."
    return verdict.detail


def _objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    items = value if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, dict))
