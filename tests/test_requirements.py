"""Each requirement and each guarantee has tests that exist, and its page is what is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from docs import requirements as docs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PAGES = docs.pages()
GUARANTEES = docs.guarantees().entries


def faults(entries: Iterable[tuple[str, tuple[str, ...], str]]) -> list[str]:
    """Return what is wrong with entries: their ids, tests, and reasons to have none."""
    return [
        fault
        for name, tests, reason in entries
        for fault in (
            *([] if tests or reason else [f"{name}: neither a test nor a reason"]),
            *(f"{name}: there is no {test}" for test in tests if not docs.exists(test)),
            *(f"{name}: {test} twice" for test in set(tests) if tests.count(test) > 1),
        )
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_printed_from_its_requirements(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page], "run `make docs`"


def test_a_guarantee_has_tests_that_exist_or_a_gap() -> None:
    assert [entry.id for entry in GUARANTEES] == list(range(1, len(GUARANTEES) + 1))
    assert faults((str(entry.id), entry.tests, entry.gap) for entry in GUARANTEES) == []


HERE = "tests/test_requirements.py::test_what_is_wrong_with_an_entry_is_found"


@pytest.mark.parametrize(
    ("tests", "reason", "fault"),
    [
        ((HERE,), "", None),
        ((), "no test cuts the power", None),
        (("tests/browser_units/uamp.test.mjs",), "", None),
        ((), "", "neither a test nor a reason"),
        ((HERE, HERE), "", f"{HERE} twice"),
        (("tests/test_requirements.py",), "", "there is no tests/test_requirements.py"),
        (("tests/test_no_such.py::test_it",), "", "there is no tests/test_no_such.py::test_it"),
        ((f"{HERE}_never",), "", f"there is no {HERE}_never"),
        (("docs/requirements.py::pages",), "", "there is no docs/requirements.py::pages"),
    ],
)
def test_what_is_wrong_with_an_entry_is_found(
    tests: tuple[str, ...], reason: str, fault: str | None
) -> None:
    assert faults([("1", tests, reason)]) == ([f"1: {fault}"] if fault else [])
