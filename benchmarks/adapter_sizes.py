"""The lines of code of each adapter: pure ones, and those at the server's boundary."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GATEWAY: Final = ROOT / "gateway_app"
# Imports of modules that take part in a request; all others only know messages.
_DOOR: Final = (
    "django", "channels", "agents_app", "chat_app", "payments_app", "sessions_app",
    "gateway_app.backend", "gateway_app.http",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ModuleSize:
    """A gateway module: its folder (`''` for shared ones) and its lines of code.

    Blank lines, comments and docstrings do not count. `is_pure` modules import neither Django nor
    anything that opens sessions.
    """

    folder: str
    name: str
    lines: int
    is_pure: bool


def sizes(gateway: Path = GATEWAY) -> Iterator[ModuleSize]:
    """Yield the gateway's modules by folder and name."""
    for path in sorted(gateway.rglob("*.py")):
        tree = ast.parse(path.read_text())
        folder = path.parent.relative_to(gateway).as_posix()
        yield ModuleSize(
            folder="" if folder == "." else folder,
            name=path.name,
            lines=len(_code_lines(tree)),
            is_pure=not any(_is_route(name) for name in _imports(tree)),
        )


def show_sizes() -> None:
    """Print the lines of each adapter and of each of its modules."""
    modules = list(sizes())
    print(f"\n{'adapter':28}{'pure':>7}{'route':>7}   lines of code, by module")
    for folder in dict.fromkeys(module.folder.partition("/")[0] for module in modules):
        adapter_modules = [
            module for module in modules if module.folder.partition("/")[0] == folder
        ]
        pure = sum(module.lines for module in adapter_modules if module.is_pure)
        route = sum(module.lines for module in adapter_modules if not module.is_pure)
        parts = ", ".join(
            f"{module.name.removesuffix('.py')} {module.lines}"
            for module in adapter_modules
            if module.lines
        )
        print(f"{folder or 'shared by all':28}{pure:>7}{route:>7}   {parts}")


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield a module's imports at run time, without those for types."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_route(name: str) -> bool:
    return any(name == route or name.startswith(f"{route}.") for route in _DOOR)


def _code_lines(tree: ast.Module) -> set[int]:
    """Return the lines that contain code, not only docstrings or comments."""
    docstrings = {
        id(node.body[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and ast.get_docstring(node, clean=False) is not None
    }
    lines: set[int] = set()

    def add(node: ast.AST) -> None:
        if id(node) in docstrings:
            return
        if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias):
            lines.add(node.lineno)
            if node.end_lineno is not None and not isinstance(node, ast.stmt):
                lines.update(range(node.lineno, node.end_lineno + 1))
        for child in ast.iter_child_nodes(node):
            add(child)

    add(tree)
    return lines
