"""Verifies that an exported chat is complete, by its final count and SHA-256 (docs/rest.md)."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from types import TracebackType
from typing import Any, Self

import msgspec

from uamp.client.errors import ClientError, ExportCutError
from uamp.client.exports.answers import ExportedAnswers, ExportedAnswersCheck
from uamp.client.exports.json_form import ExportPart, begins_json, parts_of
from uamp.client.exports.log import ExportedLog, ExportedLogCheck
from uamp.client.exports.reading import object_of
from uamp.logs.check import SENTENCES
from uamp.logs.spool import TMPDIR_ADVICE, Spool, SpoolError
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

    The log comes after the messages, and the keys of the answers come last. What is compared with
    them is kept in a spool, so that memory does not grow with the chat; a ``with`` block removes
    its files.
    """

    def __init__(
        self, keys: Iterable[Mapping[str, Any]] = (), witnesses: Iterable[Witness] = ()
    ) -> None:
        self._keys = tuple(keys)
        self._witnesses = tuple(witnesses)
        self._spool = Spool()
        self._log = ExportedLogCheck("")
        self._answers = ExportedAnswersCheck("")
        self._log_lines = 0
        self._chat: dict[str, Any] | None = None
        self._end: dict[str, Any] | None = None
        self._count = 0
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._spool.close()

    def add(self, line: bytes) -> None:
        """Add a line with its line feed. Raises ExportCutError if it is not a line of an export."""
        if not line.endswith(b"\n"):
            raise ExportCutError(f"The file was cut off in line {self._lines + 1}.")
        value = object_of(line, f"Line {self._lines + 1}")
        kind = value.get("type")
        if self._end is not None:
            raise ExportCutError("The file continues after its last line.", code="export_changed")
        if self._chat is None and kind != "chat":
            raise ExportCutError("The file is not an NDJSON export of a chat.", code="no_export")
        if self._chat is None:
            self._add_chat(value)
        elif kind == "end":
            self._end = value
        elif kind == "message" and not self._log_lines:
            self._add_message(value, line)
        elif kind in ("entry", "checkpoint"):
            self._add_log(value)
        else:
            raise ExportCutError(f"Line {self._lines + 1} is not a message.", code="export_changed")

    def add_part(self, part: ExportPart) -> None:
        """Add a part of a JSON export. Raises ExportCutError, as ``add`` does."""
        if part.kind == "chat":
            self._add_chat(part.value)
        elif part.kind == "message":
            self._add_message(part.value, part.line)
        elif part.kind == "log":
            self._add_log(part.value)
        else:
            self._end = part.value

    def _add_chat(self, chat: dict[str, Any]) -> None:
        self._chat = chat
        chat_id, tables = str(chat.get("id", "")), self._spool.table
        self._log = ExportedLogCheck(chat_id, self._keys, self._witnesses, tables=tables)
        self._answers = ExportedAnswersCheck(chat_id, self._keys, tables=tables)

    def _add_message(self, message: dict[str, Any], line: bytes) -> None:
        self._count += 1
        self._digest.update(line)
        with _spooled():
            self._log.add_message(message)
            self._answers.add_message(message)

    def _add_log(self, line: dict[str, Any]) -> None:
        self._log_lines += 1
        if line.get("type") == "entry":
            with _spooled():
                self._log.add_entry(line)
        else:
            self._log.add_checkpoint(line.get("note"), line.get("tree"))

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
        with _spooled():
            if self._answers.message_count != self._count:
                # Another reader may show the first of them, where the last one is verified.
                raise ExportCutError("Two messages have the same id.", code="export_changed")
            log, answers = self._checked_log(), self._checked_answers(self._end.get("keys"))
        return ExportSummary(
            chat_id=str(self._chat.get("id", "")),
            title=str(self._chat.get("title", "")),
            count=self._count,
            sha256=self._digest.hexdigest(),
            log=log,
            answers=answers,
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
            answer, count = answers.problems[0], answers.problem_count
            raise ExportCutError(
                f"The answer {answer.message_id}: {answer.detail} ({count} in all).",
                code="export_changed",
            )
        return answers


@contextmanager
def _spooled() -> Iterator[None]:
    """Raise a failure of the temporary files as a ClientError."""
    try:
        yield
    except SpoolError as error:
        raise ClientError(str(error), code="no_temporary_space", what_to_do=TMPDIR_ADVICE) from None


def check_export(
    lines: Iterable[bytes],
    keys: Iterable[Mapping[str, Any]] = (),
    witnesses: Iterable[Witness] = (),
) -> ExportSummary:
    """Check an export, NDJSON or JSON, line by line with line feeds, as ``ExportCheck`` does.

    A JSON export that was reformatted is read as a whole.
    """
    remaining = iter(lines)
    first = next(remaining, None)
    with ExportCheck(keys, witnesses) as check:
        if first is not None and begins_json(first):
            for part in parts_of(first, remaining):
                check.add_part(part)
        elif first is not None:
            for line in chain([first], remaining):
                check.add(line)
        return check.finish()
