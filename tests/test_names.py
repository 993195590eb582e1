"""The names and words of the code: one class per name, one plain word per concept."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LISTED = subprocess.run(
    ["/usr/bin/env", "git", "ls-files"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
    timeout=60,
).stdout.splitlines()

# --- Classes ---

# Names that Django looks up.
OF_DJANGO = {"Command", "Meta", "Migration", "Params"}
# CONTRIBUTING.md lists them for readers.
PERMITTED = {
    "Agent": ("agents_app/models/agents.py", "uap/agent.py"),
    "ErrorCode": ("uamp/errors/codes.py", "upp/errors.py"),
    "Message": ("chat_app/models/chats.py", "uamp/types/content.py"),
    "Middleware": ("uap/middleware.py", "upp/middleware/chain.py"),
    "MiddlewareContext": ("uap/middleware.py", "upp/middleware/chain.py"),
    "Session": ("sessions_app/models/sessions.py", "uamp/types/session.py"),
    "ToolCall": ("sessions_app/models/responses.py", "uamp/events/server.py", "upp/tools.py"),
    "ToolResult": ("uamp/events/client.py", "upp/tools.py"),
}


def classes() -> dict[str, tuple[str, ...]]:
    """Return the modules that define a class of each name, including nested classes."""
    modules_of_classes: dict[str, list[str]] = defaultdict(list)
    for name in LISTED:
        if not name.endswith(".py") or "/migrations/" in name or name.startswith("tests/"):
            continue
        if name.endswith(("_pb2.py", "_pb2_grpc.py")):
            # Generated: gRPC names a class after the service of the specification.
            continue
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name not in OF_DJANGO:
                modules_of_classes[node.name].append(name)
    return {name: tuple(sorted(modules)) for name, modules in modules_of_classes.items()}


def test_two_classes_share_a_name_only_where_a_specification_names_both() -> None:
    shared = {name: modules for name, modules in classes().items() if len(modules) > 1}

    assert shared == PERMITTED


def test_the_contributors_page_lists_the_shared_names() -> None:
    rows = [
        line.split("|")[1].strip()
        for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]

    for name in PERMITTED:
        assert f"`{name}`" in rows


# --- Words ---

# Words to avoid in names and prose, with what to write instead.
PLAIN = {
    "somebody": "the actor: a person, a client, a payer",
    "whoever": "the actor: a person, a client, a payer",
    "nobody": "no person, no client; or what is missing",
    "anybody": "the actor: every person, any client",
    "tells": "reports, sends, returns",
    "told": "reported, sent, received",
    "hears": "receives",
    "heard": "received",
    "not to be had": "missing, not available",
    "what waits": "the call, the response",
    "lives on": "stays, continues",
    "courier": "the sender by its own name",
    "keeper": "what saves it",
    "errand": "the call, the request",
    "purse": "the account",
    "till": "until; the account",
}
WORD = re.compile(
    r"(?<![a-z])(" + "|".join(f"{word.replace(' ', '[ _]')}s?" for word in PLAIN) + r")(?![a-z])",
    re.IGNORECASE,
)
TEXT = {"css", "html", "js", "md", "mjs", "py", "sh", "toml", "txt", "yaml", "yml"}
# UAMP's word for sound.
ALLOWED = {
    "uamp/types/session.py": {"heard"},
    "docs/protocol/types.md": {"heard"},
    # The name of a database constraint.
    "payments_app/models.py": {"told"},
}


def forbidden(text: str) -> set[str]:
    """Return the words to avoid in a text, including those that are parts of a name."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text)
    return {word.lower() for word in WORD.findall(spaced)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def test_it_is_told_once", {"told"}),
        ("class CheckpointKeeper:", {"keeper"}),
        ("# Somebody asks, and what_waits goes on.", {"somebody", "what_waits"}),
        ("It was still distilled there.", set()),
    ],
)
def test_a_word_is_found_in_names_and_prose(text: str, words: set[str]) -> None:
    assert forbidden(text) == words


def test_prose_and_names_are_plain_and_name_their_actors() -> None:
    wrong = {}
    for name in LISTED:
        if name.rpartition(".")[2] not in TEXT or "/migrations/" in name:
            continue
        # Libraries of others have words of their own, as fonts have names.
        foreign = ("static/dist/", "static/vendor/", "tests/test_names.py")
        if not name.startswith(foreign):
            words = forbidden((ROOT / name).read_text(encoding="utf-8"))
            if words - ALLOWED.get(name, set()):
                wrong[name] = sorted(words - ALLOWED.get(name, set()))

    assert wrong == {}
