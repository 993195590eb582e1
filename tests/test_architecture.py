"""The import rules of docs/architecture.md, and rules for the tree that no other tool checks."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import uamp
from tests.programs import PROGRAM_SECONDS
from uamp.documents.examples import EXAMPLES

ROOT = Path(__file__).parent.parent
ROOMS = (
    "agents_app",
    "audit_app",
    "chat_app",
    "federation_app",
    "gateway_app",
    "payments_app",
    "sessions_app",
    "signing_app",
    "telemetry",
    "uamp",
    "uamp_project",
    "uap",
    "upp",
)
MODULES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
MODULE_LINES = 400
FOLDER_MODULES = 16
SHAPELESS_NAMES = {"utils", "helpers", "common", "core", "misc", "base_classes"}


def test_every_import_contract_is_kept() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(  # noqa: S603 of our own environment
        [program, "--config", "importlinter.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )

    assert done.returncode == 0, done.stdout


def test_every_room_is_under_the_contracts() -> None:
    others = {"tests", "benchmarks", "docs"}
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - others

    assert rooms == set(ROOMS)


def test_the_protocol_without_its_client_is_under_the_sans_io_contract() -> None:
    contracts = tomllib.loads((ROOT / "importlinter.toml").read_text())["tool"]["importlinter"]
    (sans_io,) = [
        set(contract["source_modules"])
        for contract in contracts["contracts"]
        if contract["name"] == "The protocol is sans-IO"
    ]
    parts = {path.stem for path in (ROOT / "uamp").iterdir() if (path / "__init__.py").exists()}
    parts |= {path.stem for path in (ROOT / "uamp").glob("[!_]*.py")}

    assert {f"uamp.{part}" for part in parts - {"client", "command_line"}} <= sans_io


def test_no_module_has_a_name_that_says_nothing() -> None:
    found = [str(path) for path in MODULES if path.stem in SHAPELESS_NAMES]

    assert found == []


def test_no_module_is_too_long_and_no_folder_too_full() -> None:
    pages = [
        path
        for path in sorted((ROOT / "static").rglob("*.js"))
        if not {"vendor", "dist"} & set(path.relative_to(ROOT).parts)
    ]
    modules = [
        path for path in MODULES if "migrations" not in path.parts and "_pb2" not in path.stem
    ]
    tests = sorted((ROOT / "tests").rglob("*.py"))
    lines = {path: path.read_text().count("\n") for path in (*modules, *pages, *tests)}
    full = Counter(path.parent for path in (*modules, *pages) if path.stem != "__init__")

    assert [str(path) for path, count in lines.items() if count > MODULE_LINES] == []
    assert [str(folder) for folder, count in full.items() if count > FOLDER_MODULES] == []


def test_only_fanout_sends_to_groups() -> None:
    callers = {
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        if any(
            isinstance(node, ast.Attribute) and node.attr == "group_send"
            for node in ast.walk(ast.parse(path.read_text()))
        )
    }

    assert callers == {"chat_app/log/fanout.py"}


# Code that deletes the rows it locks needs the stronger lock.
DELETES_WHAT_IT_LOCKS = {
    "sessions_app/data_rights/deleted_chats.py",
    "sessions_app/process/retention.py",
}


def test_a_lock_of_a_row_leaves_rows_that_name_it_alone() -> None:
    """FOR UPDATE blocks inserts that reference the row, which invites deadlocks."""
    stronger = set()
    for path in MODULES:
        text = path.read_text()
        calls = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "select_for_update"
            and "no_key" not in {keyword.arg for keyword in node.keywords}
        ]
        if calls or " FOR UPDATE" in text:
            stronger.add(path.relative_to(ROOT).as_posix())

    assert stronger == DELETES_WHAT_IT_LOCKS


@pytest.mark.parametrize(
    "name",
    [
        "bootstrap",
        "runtime",
        "dev",
        "interop/openai",
        "interop/frameworks",
        "interop/litellm",
        "interop/a2a",
        "interop/a2a-03",
        "interop/a2a-server",
        "interop/remote-servers",
        "interop/litellm-server",
    ],
)
def test_locks_pin_hashes_and_name_no_registry(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()

    assert re.findall(r"://|--index|--extra-index|--find-links", text) == []
    for requirement in re.split(r"\n(?=\S)", text.strip()):
        assert "==" in requirement.splitlines()[0]
        assert "--hash=sha256:" in requirement


# --- Nothing that is public is unused ---


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return all nodes of a module."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def named_nodes_of(path: Path) -> list[ast.AST]:
    """Return the nodes of a module that import, or access an attribute of a name."""
    return [
        node
        for node in nodes_of(path)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
    ]


def names_used_of(package: str, paths: list[Path]) -> set[str]:
    """Return the names of a package that modules use, by import or as attributes."""
    parent, _, leaf = package.rpartition(".")
    found: set[str] = set()
    for path in paths:
        aliases: set[str] = set()
        nodes = named_nodes_of(path)
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module == package:
                found |= {name.name for name in node.names}
            if isinstance(node, ast.ImportFrom) and parent and node.module == parent:
                aliases |= {n.asname or n.name for n in node.names if n.name == leaf}
            elif isinstance(node, ast.Import):
                aliases |= {n.asname or n.name for n in node.names if n.name == package}
        found |= {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in aliases
        }
    return found


def functions_of(path: Path) -> set[str]:
    """Return the public functions of a module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {n.name for n in body if isinstance(n, kinds) and not n.name.startswith("_")}


# The interfaces of the apps: the modules that read rows and those that change them.
DOORS = [
    f"{room}.{name}"
    for room in ("agents_app", "chat_app", "payments_app", "sessions_app")
    for name in ("selectors", "services")
    if (ROOT / room / f"{name}.py").exists()
]
DOORS += [
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    for room in ("chat_app/log", "chat_app/members")
    for path in sorted((ROOT / room).glob("[!_]*.py"))
]


@pytest.mark.parametrize("door", [*DOORS, "payments_app.ledger.holds"])
def test_every_function_of_a_door_is_used_by_the_product(door: str) -> None:
    own = ROOT / f"{door.replace('.', '/')}.py"
    inside = {
        node.id
        for node in nodes_of(own)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    used = names_used_of(door, [path for path in MODULES if path != own]) | inside

    assert functions_of(own) - used == set()


def test_every_operation_of_the_ledger_is_used_by_the_product() -> None:
    door = ROOT / "payments_app" / "services.py"
    exported = {
        name: value
        for name, value in vars(importlib.import_module("payments_app.services")).items()
        if inspect.isfunction(value)
    }
    others = [path for path in MODULES if path != door]
    used = names_used_of("payments_app.services", others)
    # The folder of payment tokens is below those modules.
    own = {name for name, it in exported.items() if name in names_used_of(it.__module__, others)}

    assert set(exported) - used - own == set()


def test_every_name_that_uamp_exports_is_used_or_documented() -> None:
    pages = (ROOT / "docs" / "protocol" / "types.md").read_text(encoding="utf-8")
    # Events and their parts are on the reference pages: the library promises them.
    documented = set(re.findall(r"^## (\w+)$", pages, re.MULTILINE))
    documented |= {type(example).__name__ for example in EXAMPLES.values()}
    outside = [path for path in MODULES if path.relative_to(ROOT).parts[0] != "uamp"]
    used = names_used_of("uamp", outside)
    for path in (ROOT / "uamp").rglob("*.py"):
        module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        used |= names_used_of(module.removesuffix(".__init__"), outside)

    # Exceptions are also caught by their bases.
    raised = [vars(uamp)[name] for name in uamp.__all__ if name.endswith("ProtocolError")]
    bases = {base.__name__ for error in raised for base in error.__mro__[1:]}

    assert set(uamp.__all__) - used - documented - bases == set()


# --- Texts cite only the repository ---

WRITTEN = {".py", ".js", ".css", ".md", ".html", ".toml"}
# Papers outside the repository, their sections, and headings that are not sentences.
ELSEWHERE = re.compile(
    r"DESIGN( §| D\d|\.md)|\([DFG]\d+\)|notes[ /]([FG]\d|§|[a-z-]+\.md)|[Tt]he law:"
)


def test_no_text_cites_what_is_not_in_the_repository() -> None:
    listed = subprocess.run(
        ["/usr/bin/env", "git", "ls-files"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PROGRAM_SECONDS,
    ).stdout.splitlines()
    paths = [ROOT / name for name in listed if Path(name).suffix in WRITTEN]
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        if path != Path(__file__)
        and path.is_file()
        and not {"dist", "migrations", "vendor"} & set(path.parts)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if ELSEWHERE.search(line)
    ]

    assert found == []
