"""Each requirement and each guarantee has tests that exist, and its page is what is printed.

A test declares a requirement with the section in its docstring (`UAP §5.4`), or by standing in a
module that is named `test_spec_*.py`. A requirement has to name each of them.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from docs import requirements as docs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PAGES = docs.pages()
GUARANTEES = docs.guarantees().entries
SPECIFICATIONS = [(file.stem, docs.specification(file)) for file in docs.CONFORMANCE]
each_specification = pytest.mark.parametrize(
    "specification", [data for _, data in SPECIFICATIONS], ids=[name for name, _ in SPECIFICATIONS]
)
LEVELS = {"", "MUST", "MUST NOT", "SHALL NOT", "SHOULD", "OPTIONAL"}


def faults(entries: Iterable[tuple[str, tuple[str, ...], str]]) -> list[str]:
    """Return the faults of entries: their ids, tests, and reasons to have none."""
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


@each_specification
def test_a_requirement_has_tests_that_exist_or_a_divergence(
    specification: docs.Specification,
) -> None:
    entries = specification.requirements

    assert faults((e.id, e.tests, e.divergence.why if e.divergence else "") for e in entries) == []
    assert [e.id for e in entries if not e.text] == []
    assert [
        e.id for e in entries if e.divergence and not (e.divergence.specified and e.divergence.here)
    ] == []


@each_specification
def test_each_section_has_its_requirements_once_and_in_order(
    specification: docs.Specification,
) -> None:
    names = [entry.id for entry in specification.requirements]
    numbers = [section.number for section in specification.sections]
    order = [[int(part) for part in n.split(".")] for n in numbers if n[0].isdigit()]

    assert len(set(names)) == len(names)
    assert len(set(numbers)) == len(numbers)
    assert order == sorted(order)
    for section in specification.sections:
        assert section.requirements, section.number
        assert {re.sub(r"-.*", "", entry.id) for entry in section.requirements} == {section.number}


@each_specification
def test_every_word_of_rfc_2119_has_its_requirement(specification: docs.Specification) -> None:
    for section in specification.sections:
        levels = [entry.level for entry in section.requirements]
        assert set(levels) <= LEVELS
        assert sorted(filter(None, levels)) == sorted(section.words), section.number


def declared(name: str) -> dict[str, set[str]]:
    """Return the tests whose docstrings name sections of a specification, with these."""
    sections_of_tests: dict[str, set[str]] = {}
    for file in sorted((docs.ROOT / "tests").rglob("test_*.py")):
        path = file.relative_to(docs.ROOT).as_posix()
        if f"{name} §" not in file.read_text(encoding="utf-8"):
            continue
        for test, node in docs.tests_of(path).items():
            if re.search(rf"\b{name} §\d", docstring := ast.get_docstring(node) or ""):
                sections_of_tests[f"{path}::{test}"] = set(
                    re.findall(r"§(\d+(?:\.\d+)*)", docstring)
                )
    return sections_of_tests


@each_specification
def test_a_test_that_declares_a_section_is_named_by_a_requirement_of_it(
    specification: docs.Specification,
) -> None:
    named_tests = {
        (test, section.number)
        for section in specification.sections
        for entry in section.requirements
        for test in entry.tests
    }

    assert [
        test
        for test, sections in declared(specification.name).items()
        if not any((test, section) in named_tests for section in sections)
    ] == []


def test_a_test_of_a_specification_is_named_by_a_requirement() -> None:
    named_tests = {
        t for _, data in SPECIFICATIONS for entry in data.requirements for t in entry.tests
    }
    modules = [
        file.relative_to(docs.ROOT).as_posix() for file in docs.ROOT.glob("tests/**/test_spec_*.py")
    ]

    assert modules
    assert [
        f"{module}::{test}"
        for module in modules
        for test in docs.tests_of(module)
        if f"{module}::{test}" not in named_tests
    ] == []


def test_the_tests_of_uap_declare_their_sections() -> None:
    uap = docs.specification(docs.ROOT / "docs" / "conformance" / "uap.toml")
    sections = declared("UAP")

    assert [
        test
        for section in uap.sections
        for entry in section.requirements
        for test in entry.tests
        if section.number not in sections.get(test, ())
    ] == []


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
