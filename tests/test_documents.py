"""The documents are consistent: links and anchors work, and the index lists every decision."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))


@cache
def prose(page: Path) -> str:
    """Return the text of a page without its examples."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    return re.findall(r"\]\(([^)\s]+)\)", text)


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub generates them."""
    anchor_names: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", prose(page), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        name = words.replace(" ", "-")
        anchor_names.add(name)
    return anchor_names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link}: there is no such file"
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target), f"{link}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_two_headings_of_one_name(page: Path) -> None:
    # In the changelog, each version has sections of the same names.
    lines = re.findall(r"^## .+$", prose(page), re.MULTILINE)
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_marks_of_a_merge(page: Path) -> None:
    assert re.findall(r"^(?:<{7}|>{7}) .*$", page.read_text(), re.MULTILINE) == []


def test_the_index_leads_to_every_page_for_readers() -> None:
    linked = {link.partition("#")[0] for link in links(ROOT / "docs" / "README.md")}
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert pages - {"README.md"} <= linked


def test_pages_for_operators_name_the_program_that_an_installation_has() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    readers, _, _ = index.partition("## For people who change the server")
    names = re.findall(r"\]\(([\w-]+\.md)\)", readers)
    lines = {
        (name, line)
        for name in names
        for line in (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()
        if "manage.py" in line and "in a checkout" not in line.lower()
    }
    assert lines == set()


def test_every_decision_has_its_number_and_its_line_in_the_index() -> None:
    index = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", prose_of_index(), re.MULTILINE)
    titles = [re.findall(r"\A# (\d+)\. (.+)$", d.read_text(), re.MULTILINE)[0] for d in DECISIONS]
    assert index == [
        (*title, decision.name) for title, decision in zip(titles, DECISIONS, strict=True)
    ]
    numbers = [int(number) for number, _ in titles]
    assert numbers == [int(decision.name[:4]) for decision in DECISIONS]
    assert len(set(numbers)) == len(numbers)


def prose_of_index() -> str:
    return prose(ROOT / "docs" / "adr" / "README.md")


def test_a_decision_that_is_named_is_linked_or_there() -> None:
    there = {int(decision.name[:4]) for decision in DECISIONS}
    for page in PAGES:
        for number in re.findall(r"\bADR (\d+)", prose(page)):
            assert int(number) in there, f"{page.name}: ADR {number}"


# --- Names of code ---

# The changelog keeps the names of its time.
PAGES_OF_TODAY = [page for page in PAGES if page.name != "CHANGELOG.md"]
LISTED = subprocess.run(
    ["/usr/bin/env", "git", "ls-files"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
    timeout=60,
).stdout.splitlines()
TOP = {name.partition("/")[0] for name in LISTED}
ENDING = r"\.(?:py|md|js|css|html|svg|png|toml|txt|in)"
PATH = re.compile(rf"[\w.-]+(?:/[\w.-]+)+{ENDING}")
FILE = re.compile(rf"\w[\w-]*{ENDING}")
FOLDER = re.compile(r"[\w-]+(?:/[\w-]+)*/?")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
# Checks of `manage.py check`, and keys in a message's metadata.
NOT_CODE = re.compile(r"uamp\.[EW]\d+|uap\.(synthetic|unfinished)")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


@cache
def defined_in(path: Path) -> set[str]:
    """Return the names that a module defines, with `Class.member` for class members."""
    names: set[str] = set()

    def add(body: list[ast.stmt], prefix: str = "") -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.add(prefix + node.name)
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names.update(prefix + (name.asname or name.name) for name in node.names)
            targets: list[ast.expr] = [node.target] if isinstance(node, ast.AnnAssign) else []
            if isinstance(node, ast.Assign):
                targets = node.targets
            names.update(prefix + target.id for target in targets if isinstance(target, ast.Name))
            if isinstance(node, ast.ClassDef):
                add(node.body, f"{prefix}{node.name}.")

    add(ast.parse(path.read_text(encoding="utf-8")).body)
    return names


def is_code(name: str) -> bool:
    """Return whether a dotted name, starting with an app, is a module or defined in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        folder, rest = ROOT.joinpath(*parts[:length]), ".".join(parts[length:])
        module = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        if module.is_file():
            return not rest or rest in defined_in(module)
    return False


def exists(word: str) -> bool:
    """Return whether a word that looks like a path or a name of code exists in this repository.

    Words that do not begin with a folder of the repository (a URL, an event, a library) are not
    checked.
    """
    begin = re.split(r"[/.]", word)[0]
    if match := TEST.fullmatch(word):
        path, name = match.groups()
        return (ROOT / path).is_file() and name in defined_in(ROOT / path)
    if PATH.fullmatch(word):
        return (ROOT / word).is_file()
    if FILE.fullmatch(word):
        return any(name.rpartition("/")[2] == word for name in LISTED)
    if begin not in TOP:
        return True
    if "/" in word and FOLDER.fullmatch(word):
        return (ROOT / word).exists()
    return bool(NOT_CODE.fullmatch(word)) or not DOTTED.fullmatch(word) or is_code(word)


@pytest.mark.parametrize("page", PAGES_OF_TODAY, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_and_name_of_code_exists(page: Path) -> None:
    spans = re.findall(r"`([^`\n]+)`", prose(page))
    spans += re.findall(r"^```sh$(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    words = {word.removesuffix("()") for span in spans for word in span.split()}

    assert sorted(word for word in words if not exists(word)) == []


@pytest.mark.parametrize("page", PAGES_OF_TODAY, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_to_a_module_names_what_the_module_defines(page: Path) -> None:
    linked = re.findall(r"\[`([\w.]+)(?:\(\))?`\]\(([^)\s]+\.py)\)", prose(page))
    missing = [
        (name, target)
        for name, target in linked
        if name not in defined_in((page.parent / target).resolve())
    ]

    assert missing == []


def test_every_row_of_the_map_of_the_code_leads_there() -> None:
    page = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n## Where does it go?\n")
    rows = re.findall(r"^\| (?!to do this)(.+?) \| (.*) \|$", section, re.MULTILINE)
    assert len(rows) > 50
    for task, place in rows:
        words = [word for span in re.findall(r"`([^`]+)`", place) for word in span.split()]
        is_place = [
            word.partition("/")[0].partition(".")[0] in TOP and exists(word) for word in words
        ]
        assert any(is_place) or "](" in place, task


@pytest.mark.parametrize(
    ("word", "there"),
    [
        ("sessions_app/urls.py", True),
        ("sessions_app/no_such.py", False),
        ("urls.py", True),
        ("no_such.py", False),
        ("sessions_app/access/", True),
        ("sessions_app/no_such/", False),
        ("chat_app.members.chats.create_chat", True),
        ("chat_app.members.no_such", False),
        ("chat_app.models.chats.Chat.last_seq", True),
        ("chat_app.models.chats.Chat.no_such", False),
        ("tests/test_documents.py::test_a_name_of_code_is_found_or_missed", True),
        ("tests/test_documents.py::test_no_such", False),
        ("response.created", True),
        ("/api/v1/chats", True),
    ],
)
def test_a_name_of_code_is_found_or_missed(word: str, *, there: bool) -> None:
    assert exists(word) is there


# --- Settings ---

DEFAULTS = dict(
    re.findall(
        r"^\| `([A-Z_]+)` \| `?([^`|]*)`? \|",
        (ROOT / "docs" / "settings.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)


def test_the_guarantees_have_the_defaults_of_their_settings() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    defaults = re.findall(r"`([A-Z_]{5,})` \((\w+(?: MiB)?)\)", page)

    assert defaults
    for name, value in defaults:
        number, _, unit = value.partition(" ")
        assert DEFAULTS[name] == (str(int(number) * 2**20) if unit else value), name


@pytest.mark.parametrize("page", PAGES_OF_TODAY, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_setting_that_a_page_names_is_on_the_page_of_settings(page: Path) -> None:
    setting_names = set(re.findall(r"`(UAMP_[A-Z_]*[A-Z])`", prose(page)))

    assert sorted(setting_names - set(DEFAULTS)) == []
