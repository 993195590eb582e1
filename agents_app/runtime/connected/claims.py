"""The size limits of a daemon's answer and the bounds on its reported usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from agents_app.runtime.failures import AgentError
from agents_app.runtime.usage import added_usage
from uamp.errors import ErrorCode
from uamp.storable_text import storable
from uamp.types.session import UsageStats

if TYPE_CHECKING:
    from agents_app.selectors import AgentSpec

ANSWER_CHARS: Final = 1_000_000
"""The most characters of text, thoughts and calls in one answer, as for hosted agents."""
EVENTS: Final = 200_000
"""The most events in one answer, whatever they carry."""
THOUGHTS: Final = 20_000
"""The most thoughts in one answer that become items of its output."""
_CAUSE_CHARS: Final = 500


class DaemonClaims:
    """Counts one answer of one daemon, for the run's task and the tasks of its calls."""

    def __init__(self, spec: AgentSpec) -> None:
        self.used = UsageStats()
        # The code points of the answer's text.
        self.text_chars = 0
        self._name, self._is_free = spec.name, spec.pricing.is_free
        self._events = 0
        self._written = 0
        self._written_bytes = 0
        self._read_bytes = 0
        # The bytes that reports cover, by their own counts or by the meter's estimate.
        self._covered_input = self._covered_output = 0
        self._thoughts = 0
        # Whether a further piece of a thought belongs to the last item of the output.
        self._is_in_thought = False

    def event(self) -> None:
        """Count an event; raises AgentError when there are too many."""
        self._events += 1
        if self._events > EVENTS:
            raise AgentError(
                f"{self._name} sent more than {EVENTS} events and was stopped.",
                code=ErrorCode.ANSWER_TOO_LONG,
            )

    def wrote(self, text: str) -> None:
        """Count output of the daemon's model; raises AgentError when the answer is too long."""
        if text:
            self._is_in_thought = False
        self._written_bytes += len(text.encode("utf-8", "replace"))
        self._shows(text)

    def read(self, result: str, *, is_shown: bool) -> None:
        """Count a tool result that the daemon's model reads; raises AgentError."""
        self._is_in_thought = False
        self._read_bytes += len(result.encode("utf-8", "replace"))
        if is_shown:
            self._shows(result)

    def thought(self, content: str, stage: str, *, is_delta: bool) -> None:
        """Count a thought or a piece of one, like `wrote`; its stage is not model output.

        Raises AgentError for too many characters or too many thoughts.
        """
        if not (is_delta and self._is_in_thought):
            self._thoughts += 1
        self.wrote(content)
        self._shows(stage)
        self._is_in_thought = is_delta
        if self._thoughts > THOUGHTS:
            raise AgentError(
                f"{self._name} sent more than {THOUGHTS} thoughts and was stopped.",
                code=ErrorCode.ANSWER_TOO_LONG,
            )

    def _shows(self, text: str) -> None:
        self._written += len(text)
        if self._written > ANSWER_CHARS:
            raise AgentError(
                f"{self._name} wrote more than {ANSWER_CHARS} characters and was stopped.",
                code=ErrorCode.ANSWER_TOO_LONG,
            )

    def bounded(self, claimed: UsageStats, *, sent_bytes: int) -> UsageStats | None:
        """Bound the usage that a daemon reports and add it up; return None if nothing is left.

        A token is at least one byte, so input is capped by the bytes that the daemon was sent and
        read in results, and output by the bytes that it wrote. The meter estimates the input that
        the first report of a priced answer leaves out, and the output that any report leaves out;
        later reports cannot claim these.
        """
        input_left = sent_bytes + self._read_bytes - self._covered_input
        output_left = self._written_bytes - self._covered_output
        read = max(min(claimed.input_tokens or 0, input_left), 0)
        wrote = max(min(claimed.output_tokens or 0, output_left), 0)
        if not read and not wrote:
            return None
        is_estimated = not (read or self._is_free) and self.used == UsageStats()
        self._covered_input += input_left if is_estimated else read
        self._covered_output += wrote or output_left
        bounded = UsageStats(
            input_tokens=read,
            output_tokens=wrote,
            total_tokens=read + wrote,
            cached_tokens=min(claimed.cached_tokens or 0, read) or None,
        )
        self.used = added_usage(self.used, bounded)
        return bounded

    def fail(self, cause: str) -> NoReturn:
        """Raise an AgentError with a message for users; `cause` is for operators."""
        raise AgentError(
            f"{self._name} could not finish its answer.",
            code=ErrorCode.PROVIDER_ERROR,
            cause=storable(f"its daemon: {cause}")[:_CAUSE_CHARS],
        )
