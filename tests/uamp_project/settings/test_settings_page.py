"""docs/settings.md names every environment variable and every limit, with its default."""

import ast
import re
from pathlib import Path

from uamp.limits import limit_table

ROOT = Path(__file__).parents[3]
ROOMS = (
    "uamp_project",
    "sessions_app",
    "federation_app",
    "chat_app",
    "payments_app",
    "signing_app",
    "agents_app",
    "upp",
    "uamp",
)
# Django's own, and the name of a variable that a row of an agent chooses.
NOT_OURS = {"DJANGO_SETTINGS_MODULE"}
# Of uamp_project.settings.environment; `database` is asked for what was read already.
READERS = {
    "amount", "choice", "folder", "group_bytes", "ice_servers", "integer", "items",
    "json_object", "jwt_issuers", "networks", "number", "origins", "redis", "redis_servers",
    "string", "switch",
    "witnesses",
}  # fmt: skip


def page_rows(heading: str) -> dict[str, str]:
    """Return name and default of the rows of the page, up to or from the heading."""
    text = (ROOT / "docs" / "settings.md").read_text()
    before, _, after = text.partition("## Limits of the protocol")
    part = before if heading == "variables" else after.partition("## For the tests")[0]
    return dict(re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", part, flags=re.MULTILINE))


def variables_of_the_code() -> dict[str, str | None]:
    """Return the environment variables that the code reads: name and default, None if computed."""
    defaults: dict[str, str | None] = {}
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Call(
                        func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"),
                        args=[ast.Constant(value=str(name)), *default],
                    ):
                        defaults[name] = default_of(default)
                    case ast.Call(
                        func=ast.Name(id=reader),
                        args=[ast.Constant(value=str(name)), *default],
                    ) if reader in READERS:
                        defaults[name] = default_of(default[:1])
                    case ast.Subscript(
                        value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))
                    ):
                        defaults.setdefault(name, "")
    return {name: default for name, default in defaults.items() if name not in NOT_OURS}


def default_of(arguments: list[ast.expr]) -> str | None:
    match arguments:
        case []:
            return ""
        case [ast.Constant(value=str(text))]:
            return text
        case [number]:
            constant = number_of(number)
            return None if constant is None else str(constant)
    return None


def number_of(tree: ast.expr) -> int | float | None:
    """Return a number, or what a product or a power of numbers is."""
    match tree:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=ast.Mult() | ast.Pow() as by, right=right):
            base, other = number_of(left), number_of(right)
            if base is None or other is None:
                return None
            product: int | float = base * other if isinstance(by, ast.Mult) else base**other
            return product
    return None


def test_the_page_has_every_variable_with_its_default() -> None:
    code = variables_of_the_code()
    page = page_rows("variables")

    assert set(code) - set(page) == set(), "not on the page"
    assert set(page) - set(code) == set(), "not in the code"
    for name, default in code.items():
        assert default is None or page[name] == default, name


def test_the_page_has_every_limit_with_its_default() -> None:
    assert page_rows("limits") == {name: str(default) for name, default, _ in limit_table()}


def test_what_is_turned_on_or_off_is_read_by_switch() -> None:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Compare):
                    assert "environ" not in ast.dump(node.left), f"{path}: line {node.lineno}"
