"""Exports of long chats: `uamp verify` reads them line by line, in memory that does not grow."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tests.uamp.client.long_export import LongExport
from uamp.client.errors import ExportCutError
from uamp.client.exports import check_export
from uamp.command_line.verifying import verify

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.any_database, pytest.mark.django_db]

SHORT, LONG = 1_000, 6_000
SUFFIXES = (".ndjson", ".json")


def peak_of(file: Path, keys: Path) -> int:
    """Verify a file, and return the largest size of the memory of Python, in bytes."""
    tracemalloc.start()
    try:
        done = CliRunner().invoke(verify, [str(file), "--keys", str(keys)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert done.exit_code == 0, done.output
    return peak


def is_proven(lines: list[bytes], keys: list[dict[str, Any]]) -> bool:
    """Return whether a file is whole, and the given keys prove its messages and answers."""
    try:
        summary = check_export(lines, keys)
    except ExportCutError:
        return False
    is_signed = summary.answers is not None and set(summary.answers.states) == {"valid"}
    return is_signed and summary.log is not None and summary.log.is_proven


@pytest.mark.long
def test_memory_does_not_grow_with_the_messages(tmp_path: Path) -> None:
    peaks: dict[str, list[int]] = {suffix: [] for suffix in SUFFIXES}
    for count in (SHORT, LONG):
        export = LongExport(count)
        keys = tmp_path / "keys.json"
        keys.write_text(json.dumps({"keys": export.keys}))
        for suffix in SUFFIXES:
            export.write(tmp_path / f"{count}{suffix}")
        del export
        for suffix in SUFFIXES:
            peaks[suffix].append(peak_of(tmp_path / f"{count}{suffix}", keys))
    for short, long in peaks.values():
        assert long < 2 * short


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_was_cut_or_reordered_is_refused(tmp_path: Path, suffix: str) -> None:
    export = LongExport(6)
    file = tmp_path / f"chat{suffix}"
    export.write(file)
    lines = file.read_bytes().splitlines(keepends=True)
    assert is_proven(lines, export.keys)
    for number, line in enumerate(lines):
        before, after = lines[:number], lines[number + 1 :]
        changed = [before, [*before, line[: len(line) // 2]], before + after]
        changed.append([*before, line, line, *after])
        if after:
            changed.append([*before, after[0], line, *after[1:]])
            # The commas of JSON stay where they were.
            item, next_item = (text.removesuffix(b"\n").rstrip(b",") for text in (line, after[0]))
            swapped = [line.replace(item, next_item), after[0].replace(next_item, item)]
            changed.append([*before, *swapped, *after[1:]])
        assert not any(is_proven(candidate, export.keys) for candidate in changed), number


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"messages":[\n', b'"messages":[\n,\n', "is not a part"),
        (b'"messages":[\n', b'"messages":[\n1,\n', "is not a part"),
        (b"},\n{", b"}\n{", "is not a part"),
        (b"}\n],", b"},\n],", "is not a part"),
        (b'"messages":[\n', b'"messages":[\n],"messages":[\n', "is not JSON"),
        (b'],"log":[\n', b'],"log":[\n],"log":[\n', "is not JSON"),
        (b'],"count":', b'],"log":[],"count":', "is not a part"),
        (b'],"count":', b'],"messages":[],"count":', "is not a part"),
        (b'],"count":', b'],"count":1,"count":', "duplicate member"),
        (b'],"count":', b"],count:", "is not JSON"),
        (b'"name":"ada"', b'"name":"ada","name":"ada"', "duplicate member"),
        (b'{"chat":', b'{"title":1,"chat":', "not an export of a chat"),
        (b'{"chat":{', b'{"chat":7,"other":{', "not an export of a chat"),
    ],
)
def test_json_in_the_layout_of_the_server_is_read_strictly(
    tmp_path: Path, old: bytes, new: bytes, reason: str
) -> None:
    export = LongExport(4)
    file = tmp_path / "chat.json"
    export.write(file)
    text = file.read_bytes()
    assert old in text
    with pytest.raises(ExportCutError, match=reason):
        check_export(text.replace(old, new, 1).splitlines(keepends=True), export.keys)
    with pytest.raises(ExportCutError, match="continues after its last line"):
        check_export([*text.splitlines(keepends=True), b"\n", b"1"], export.keys)
