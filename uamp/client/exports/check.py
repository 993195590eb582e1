"""Verifies that an exported chat is complete, by its final count and SHA-256 (docs/rest.md)."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from uamp.client.errors import ExportCutError
from uamp.client.exports.answers import ExportedAnswers, ExportedAnswersCheck
from uamp.client.exports.log import ExportedLog, ExportedLogCheck
from uamp.client.exports.reading import object_of, objects_of
from uamp.codec.single_lines import single_lines
from uamp.log_check import SENTENCES
from uamp.transparency.notes import Witness


class ExportSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A complete export: its chat, the number of its messages, and their SHA-256.

    ``log`` is the result for the chat's log, None if the file has none; ``answers`` that for the
    signatures of answers and receipts, None if nothing is signed.
    """

    chat_id: str
    title: str
    count: int
    sha256: str
    log: ExportedLog | None = None
    answers: ExportedAnswers | None = None


class ExportCheck:
    """Reads the lines of an NDJSON export one by one and compares them with its last line.

    This shows that the file is complete and has the messages that the server computed the checksum
    for. The checksum is not a signature: an author of a changed file can change it too. A file with
    the chat's log has a signed head, for which ``keys`` are the server's (JSON Web Keys);
    ``witnesses`` are those whose cosignatures of the server's tree are checked.
    """

    def __init__(
        self, keys: Iterable[Mapping[str, Any]] = (), witnesses: Iterable[Witness] = ()
    ) -> None:
        self._keys = tuple(keys)
        self._witnesses = tuple(witnesses)
        self._log = ExportedLogCheck("")
        self._answers = ExportedAnswersCheck("")
        self._log_lines = 0
        self._chat: dict[str, Any] | None = None
        self._end: dict[str, Any] | None = None
        self._count = 0
        self._digest = hashlib.sha256()

    def add(self, line: bytes) -> None:
        """Add a line with its line feed. Raises ExportCutError if it is not a line of an export."""
        if not line.endswith(b"\n"):
            raise ExportCutError(f"The file was cut off in line {self._lines + 1}.")
        value = object_of(line, f"Line {self._lines + 1}")
        kind = value.get("type")
        if self._end is not None:
            raise ExportCutError("The file continues after its last line.", code="export_changed")
        if self._chat is None:
            if kind != "chat":
                raise ExportCutError(
                    "The file is not an NDJSON export of a chat.", code="no_export"
                )
            self.add_chat(value)
        elif kind == "end":
            self.add_end(value)
        elif kind == "message" and not self._log_lines:
            self.add_message(value, line)
        elif kind in ("entry", "checkpoint"):
            self.add_log(value)
        else:
            raise ExportCutError(f"Line {self._lines + 1} is not a message.", code="export_changed")

    def add_chat(self, chat: dict[str, Any]) -> None:
        """Add the file's facts about its chat, which come before everything else."""
        self._chat = chat
        self._log = ExportedLogCheck(str(chat.get("id", "")), self._keys, self._witnesses)
        self._answers = ExportedAnswersCheck(str(chat.get("id", "")), self._keys)

    def add_message(self, message: dict[str, Any], line: bytes) -> None:
        """Add a message, and its line for the checksum."""
        self._count += 1
        self._digest.update(line)
        self._log.add_message(message)
        self._answers.add_message(message)

    def add_log(self, line: dict[str, Any]) -> None:
        """Add the signed head, or an entry of the log."""
        self._log_lines += 1
        if line.get("type") == "entry":
            self._log.add_entry(line)
        else:
            self._log.add_checkpoint(line.get("note"), line.get("tree"))

    def add_end(self, end: dict[str, Any]) -> None:
        """Add the count, the checksum and the keys, which come last."""
        self._end = end

    @property
    def _lines(self) -> int:
        around = (self._chat is not None) + (self._end is not None)
        return self._count + self._log_lines + around

    def finish(self) -> ExportSummary:
        """Return the summary. Raises ExportCutError if the export is incomplete."""
        if self._chat is None:
            raise ExportCutError("The file is empty.")
        if self._end is None:
            raise ExportCutError(
                f"The file was cut off: it has {self._count} messages and no last line."
            )
        if self._end.get("count") != self._count:
            raise ExportCutError(
                f"The file has {self._count} messages but states {self._end.get('count')}.",
                code="export_changed",
            )
        if self._end.get("sha256") != self._digest.hexdigest():
            raise ExportCutError(
                "The messages do not match the checksum: the file was changed.",
                code="export_changed",
            )
        if self._answers.message_count != self._count:
            # Another reader may show the first of them, where the last one is verified.
            raise ExportCutError("Two messages have the same id.", code="export_changed")
        return ExportSummary(
            chat_id=str(self._chat.get("id", "")),
            title=str(self._chat.get("title", "")),
            count=self._count,
            sha256=self._digest.hexdigest(),
            log=self._checked_log(),
            answers=self._checked_answers(self._end.get("keys")),
        )

    def _checked_log(self) -> ExportedLog | None:
        log = self._log.finish()
        if log is not None and not log.summary.is_intact:
            broken = log.summary.problems[0]
            raise ExportCutError(
                f"The log was changed: {broken.kind} at entry {broken.seq}"
                f" ({log.summary.problem_count} in all). {SENTENCES[broken.kind]}",
                code="export_changed",
            )
        return log

    def _checked_answers(self, own_keys: Any) -> ExportedAnswers | None:
        answers = self._answers.finish(own_keys)
        if answers is not None and answers.problems:
            answer, count = answers.problems[0], len(answers.problems)
            raise ExportCutError(
                f"The answer {answer.message_id}: {answer.detail} ({count} in all).",
                code="export_changed",
            )
        return answers


def check_export(
    lines: Iterable[bytes],
    keys: Iterable[Mapping[str, Any]] = (),
    witnesses: Iterable[Witness] = (),
) -> ExportSummary:
    """Check an export, NDJSON or JSON, line by line with line feeds, as ``ExportCheck`` does.

    A JSON export is read as a whole.
    """
    remaining = iter(lines)
    first = next(remaining, None)
    if first is not None and _begins_json(first):
        return _check_json(b"".join([first, *remaining]), ExportCheck(keys, witnesses))
    check = ExportCheck(keys, witnesses)
    if first is not None:
        check.add(first)
    for line in remaining:
        check.add(line)
    return check.finish()


def _begins_json(line: bytes) -> bool:
    """Return whether a first line starts a JSON export; each line of NDJSON names its type."""
    return line.lstrip()[:1] == b"{" and not line.startswith(b'{"type":')


def _check_json(text: bytes, check: ExportCheck) -> ExportSummary:
    """Check a JSON export. Its checksum covers the messages as the server writes them."""
    value = object_of(text, "The file")
    chat = value.get("chat")
    if not isinstance(chat, dict):
        raise ExportCutError("The file is not an export of a chat.", code="no_export")
    check.add_chat(chat)
    for message in objects_of(value.get("messages"), "messages"):
        check.add_message(message, single_lines(msgspec.json.encode(message)) + b"\n")
    for line_of_log in objects_of(value.get("log", []), "log"):
        check.add_log(line_of_log)
    check.add_end(value)
    return check.finish()
