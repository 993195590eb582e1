"""The inferences of an answer, for operators: times, tokens, failed attempts, the provider's ids.

A log belongs to one response and is stored with its row. It has no text by people or models; the
words of a provider's refusal are without credentials, and short.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from uamp.storable_text import storable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upp import LLMResponse, UPPError

MAX_INFERENCES: Final = 50
"""The most inferences of one answer that are stored; the first ones are left out."""
ID_CHARS: Final = 200
WORDS_CHARS: Final = 300
TOKENS_COUNTED: Final = 10**12
"""The most tokens of one inference in logs and metrics; payment has its own limit."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failed attempt: the code, the provider's HTTP status, its id of the request, its words."""

    code: str
    status: int | None = None
    request_id: str = ""
    words: str = ""


class Inference(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One inference, with all of its attempts.

    `number` counts from 1 per response. `at` is when it was sent, in milliseconds since 1970;
    `first_ms` and `ms` are the times from then to its first output and to its end. `end` is
    `failed`, `stopped`, or "" for an inference that succeeded or, without `ms`, is running.
    """

    number: int
    provider: str
    model: str
    at: int
    first_ms: int | None = None
    ms: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    request_id: str = ""
    attempts: tuple[Attempt, ...] = ()
    end: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.ms is None


class InferenceLog:
    """The inferences of one response. All calls are made on one event loop."""

    def __init__(self, earlier: Sequence[Inference] = ()) -> None:
        self._inferences = [*earlier]
        self._clocks: dict[int, float] = {}

    def begin(self, *, provider: str, model: str) -> Inference:
        """Add an inference that is being sent."""
        number = self._inferences[-1].number + 1 if self._inferences else 1
        at = time.time_ns() // 1_000_000
        sent = Inference(number=number, provider=provider, model=storable(model)[:ID_CHARS], at=at)
        self._clocks[number] = time.monotonic()
        self._inferences.append(sent)
        del self._inferences[:-MAX_INFERENCES]
        return sent

    def first_output(self, inference: Inference) -> None:
        """Record that an inference has begun to answer."""
        inference.first_ms = self._elapsed(inference)

    def answered(
        self, inference: Inference, response: LLMResponse, attempts: Sequence[Attempt]
    ) -> None:
        """Record the end of an inference that succeeded, after failed attempts, if any."""
        inference.ms = self._elapsed(inference)
        inference.input_tokens = counted(response.usage.input_tokens)
        inference.output_tokens = counted(response.usage.output_tokens)
        inference.request_id = response.request_id
        inference.attempts = tuple(attempts)
        del self._clocks[inference.number]

    def failed(self, inference: Inference, attempts: Sequence[Attempt]) -> None:
        """Record the end of an inference that failed, the last attempt included."""
        inference.ms = self._elapsed(inference)
        inference.end = "failed"
        inference.attempts = tuple(attempts)
        del self._clocks[inference.number]

    def stopped(self, inference: Inference) -> None:
        """Record the end of an inference whose run was stopped, or whose reader failed."""
        inference.ms = self._elapsed(inference)
        inference.end = "stopped"
        del self._clocks[inference.number]

    def rows(self) -> list[dict[str, Any]] | None:
        """Return the stored inferences as JSON values, oldest first, or None."""
        return msgspec.to_builtins(self._inferences) if self._inferences else None

    def _elapsed(self, inference: Inference) -> int:
        return round((time.monotonic() - self._clocks[inference.number]) * 1000)


def read_inferences(stored: object) -> list[Inference]:
    """Return the inferences of a row; empty if this server cannot read them."""
    try:
        return msgspec.convert(stored or [], list[Inference])
    except msgspec.ValidationError:
        return []


def counted(tokens: int) -> int:
    """Return a provider's token count, clamped to a sane range."""
    return min(max(tokens, 0), TOKENS_COUNTED)


def attempt_of(error: UPPError, words: str) -> Attempt:
    """Return a failed attempt; `words` are the provider's own, without credentials."""
    return Attempt(
        code=error.code.value,
        status=error.status_code,
        request_id=error.request_id,
        words=storable(words)[:WORDS_CHARS],
    )
