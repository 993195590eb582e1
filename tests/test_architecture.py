"""The import rules of docs/architecture.md, and rules for the tree that no other tool checks."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection
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


@cache
def text_of(path: Path) -> str:
    """Return the source of a module."""
    return path.read_text(encoding="utf-8")


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
    paths = [str(path) for path in MODULES if path.stem in SHAPELESS_NAMES]

    assert paths == []


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
        if "group_send" in (text := text_of(path))
        and any(
            isinstance(node, ast.Attribute) and node.attr == "group_send"
            for node in ast.walk(ast.parse(text))
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
        text = text_of(path)
        nodes = ast.walk(ast.parse(text)) if "select_for_update" in text else ()
        calls = [
            node
            for node in nodes
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
def names_used_in(path: Path) -> dict[str, set[str]]:
    """Return the names that a module uses of others, by import or as attributes, by module."""
    used: dict[str, set[str]] = defaultdict(set)
    # What a name in this module may stand for.
    modules: dict[str, set[str]] = defaultdict(set)
    attributes = []
    for node in ast.walk(ast.parse(text_of(path))):
        if isinstance(node, ast.ImportFrom) and node.module:
            used[node.module] |= {name.name for name in node.names}
            for name in node.names:
                modules[name.asname or name.name].add(f"{node.module}.{name.name}")
        elif isinstance(node, ast.Import):
            for name in node.names:
                modules[name.asname or name.name].add(name.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attributes.append((node.value.id, node.attr))
    for owner, attribute in attributes:
        for module in modules.get(owner, set()):
            used[module].add(attribute)
    return used


@cache
def users_of(module: str) -> dict[Path, set[str]]:
    """Return the names that each module uses of one."""
    return {path: names for path in MODULES if (names := names_used_in(path).get(module))}


def names_used_of(module: str, paths: Collection[Path]) -> set[str]:
    """Return the names of a module that others use."""
    return {name for path, names in users_of(module).items() if path in paths for name in names}


def functions_of(path: Path) -> set[str]:
    """Return the public functions of a module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse(text_of(path)).body
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


def test_every_function_of_a_door_is_used_by_the_product() -> None:
    unused = {}
    for door in (*DOORS, "payments_app.ledger.holds"):
        module_path = ROOT / f"{door.replace('.', '/')}.py"
        inside = {
            node.id
            for node in ast.walk(ast.parse(text_of(module_path)))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        used = names_used_of(door, set(MODULES) - {module_path}) | inside
        unused[door] = functions_of(module_path) - used

    assert len(unused) > 30
    assert {door: names for door, names in unused.items() if names} == {}


def test_every_operation_of_the_ledger_is_used_by_the_product() -> None:
    door = ROOT / "payments_app" / "services.py"
    exported = {
        name: value
        for name, value in vars(importlib.import_module("payments_app.services")).items()
        if inspect.isfunction(value)
    }
    others = set(MODULES) - {door}
    used = names_used_of("payments_app.services", others)
    # The folder of payment tokens is below those modules.
    own_operations = {
        name
        for name, operation in exported.items()
        if name in names_used_of(operation.__module__, others)
    }

    assert set(exported) - used - own_operations == set()


def test_every_name_that_uamp_exports_is_used_or_documented() -> None:
    pages = (ROOT / "docs" / "protocol" / "types.md").read_text(encoding="utf-8")
    # Events and their parts are on the reference pages: the library promises them.
    documented = set(re.findall(r"^## (\w+)$", pages, re.MULTILINE))
    documented |= {type(example).__name__ for example in EXAMPLES.values()}
    outside = {path for path in MODULES if path.relative_to(ROOT).parts[0] != "uamp"}
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


def test_no_text_cites_anything_outside_the_repository() -> None:
    listed = subprocess.run(
        ["/usr/bin/env", "git", "ls-files"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PROGRAM_SECONDS,
    ).stdout.splitlines()
    paths = [ROOT / name for name in listed if Path(name).suffix in WRITTEN]
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        if path != Path(__file__)
        and path.is_file()
        and not {"dist", "migrations", "vendor"} & set(path.parts)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if ELSEWHERE.search(line)
    ]

    assert places == []
