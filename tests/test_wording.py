"""The interface, the documentation and the messages to clients are in idiomatic English.

Phrases of a literal translation are refused, each with what to write instead. The messages are the
literals of the product's Python: errors, descriptions of the API, texts of the admin and of the
commands. Modules are parsed only if a phrase is in their source, since parsing all takes seconds.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from docs import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    # A pattern, an example of it, and what to write.
    Wording: TypeAlias = tuple[str, str, str]

# What is refused, an example of it, and what to write.
REFUSED: Final = (
    (r"goes on where it (?:broke|stopped)", "goes on where it broke", "resumes where it left off"),
    (r"\bwho (?:types|writes) and who\b", "who types and who reads", "who is typing"),
    (r"\bby another way\b", "came by another way", "sent through another protocol"),
    (r"\b[Pp]ut .{1,30} in the place of\b", "Put a key in the place of x", "Replace x"),
    (r"\bthat is none\b", "a number that is none", "an invalid number"),
    (r"^Of an? [a-z ]+ every\b", "Of a deleted message every read", "start with the subject"),
    (r"\bWhat is to be\b", "What is to be another", "Fields to change"),
    (r"\btakes? away\b", "an empty text takes away", "clears it"),
    (
        r"(?<![Tt]here )\bis no (?:path|text|list|number|file|string)\b",
        "is no text",
        "is not a text file",
    ),
    (r"\bwhat is no\b", "Refuse what is no list", "Reject anything but a list"),
    (r"\bWhose an? \w+ \w+ is\b", "Whose a new content is", "Who owns a new file"),
    (r"\bhas a defect\b", "The server has a defect.", "Internal server error."),
    (r"^(?:Thinks|Writes|Runs)$", "Thinks", "Thinking…"),
    (r"\bShall (?:this|the|I|we|it)\b", "Shall this browser tell you", "Turn on notifications?"),
    (r"\bneed not ask\b", "Agents that need not ask", "Agents with standing approval"),
    (r"\bfor ever more\b", "waiting for ever more", "forever"),
    (r"\bgoes by itself\b", "It waits and goes by itself", "is sent automatically"),
    (r"\btoo little\.", "$0.01 too little.", "$0.01 short"),
    (r"^(?:Keep it|Good for|Ask me again)$", "Keep it", "Cancel"),
    (r"\bis (?:changed|removed)\.$", "echo is changed.", "echo updated."),
    (r"\bNothing (?:said|has that)\b", "Nothing said yet", "No messages yet"),
    (r"\bhas not been allowed to\b", "has not been allowed to notify", "aren't enabled"),
)
# The same for messages to clients. Documents use some of these phrases for good reasons.
IN_MESSAGES: Final = (
    (r"\bnames? (?:no|another)\b", "The signature names no key.", "The signature has no key id."),
    (
        r"(?:^|[.:;] )Name (?:an?|one|the|your)\b|\bname one of\b",
        "Name an agent.",
        "Specify an agent.",
    ),
    (
        r"\bis(?: not)? that of\b|\bis of another\b",
        "The algorithm is not that of the key.",
        "The algorithm does not match the key.",
    ),
    (r"\bor a long one\b|\bempty or long\b", "no id, or a long one", "missing or too long"),
    (r"\bhas not (?:\d|\{)", "The key has not 32 bytes.", "The key must have 32 bytes."),
    (
        r"(?<![Tt]here )\bis no (?!longer\b|more\b|one\b|such\b)[a-z]+",
        "It is no ask.",
        "It is not an ask.",
    ),
    (r"\bis not good\b", "The answer of {x} is not good", "The answer from {x} was rejected"),
    (r"\bWrite an? [\w ]+(?<!such) as\b", "Write a time as 22:30.", "Enter a time such as 22:30."),
    (
        r", as (?:[\d.]+ or|\d+\.\d|https?:)|\b(?:array|object|arguments|environment),? as [\[{]",
        "an amount, as 10 or 99.50",
        "an amount, such as 10 or 99.50",
    ),
    (
        r"\bstored for you\b",
        "At most 3 files are stored for you.",
        "You can store at most 3 files.",
    ),
    (r"\b(?:are|is) not shown again\b", "It is not shown again.", "It won't be shown again."),
    (r"\bfor the audit$|\bin the audit\.", "Recorded in the audit.", "Recorded in the audit log."),
    (r"\bCtrl-C stops\b", "Ctrl-C stops it.", "Press Ctrl-C to stop."),
    (r"\bSay (?:which|at least)\b", "Say which words to look for.", "Enter a word to search for."),
    (r"\b(?:[Nn]o|a) content \{|\ban? content\b(?! item)", "no content {x}", "no file {x}"),
    (r"\b(?:A|a|the) medium\b(?=[ .])", "A message needs text or a medium.", "text or a file."),
    (r"half of a surrogate", "half of a surrogate pair", "a lone surrogate"),
    (r"\bcalls? of tools\b", "more than 9 calls of tools", "more than 9 tool calls"),
    (r"\b(?:all|ask) without one\b", "an agent; all without one", "an agent (default: all)"),
    (r"[Ii]t ends with 1\b", "It ends with 1 if", "Exits with status 1 if"),
    (r"\b[Nn]o \w+ is named\b", "no account is named {x}", "There is no account named {x}."),
    (r"\b(?:are|is) due: the\b", "{x} are due: the amount is less.", "It is too low: {x} is due."),
    (r"^What is said\b", "What is said in a call is raw sound", "Speech in a call must be audio"),
    (r"^Skip to the\b", "Skip to the content", "Skip to content"),
    (r"\bthe administration\b", "no access to the administration", "can't open the admin pages"),
    (r"\b[Ii]nvitation link\b", "Invitation link", "Invite link"),
    (r"^[Yy]ou would be\b", "you would be an admin", "you'll join as an admin"),
)
# A refusal names the fault: a definition leaves the client to guess what was wrong.
SUBJECT: Final = r"^(?:An?|The \w+ (?:of|in)) [\w.{} -]+? "
VALUE: Final = r"^`?\{?[\w.-]+\}?`?(?: in `?\{?\w+\}?`?)? is "
IN_REFUSALS: Final = (
    (
        rf"{SUBJECT}(?:is|are) (?:(?:an?|at most|in|one|strings|written|with|signed or)\b|\{{)",
        "A reaction is one emoji.",
        "A reaction must be one emoji.",
    ),
    (
        rf"{SUBJECT}(?:has|takes|ends with) (?:an? (?!invalid)|one\b|its\b|\d|\{{|intents|three)",
        "A file has 1 to 9 bytes.",
        "A file must have 1 to 9 bytes.",
    ),
    (
        rf"{VALUE}(?:the (?:id|number|delta_seq)|an? (?:string|number|list|object|time|whole))\b",
        "`{x}` is a string.",
        "`{x}` must be a string.",
    ),
    (
        r"^(?:[A-Z][a-z]+s|Sound) (?:is|are) (?:[A-Z{]|a JSON)",
        "Keys are Ed25519 or P-256.",
        "Keys must be Ed25519 or P-256.",
    ),
)
ROOMS: Final = (
    *("agents_app", "audit_app", "chat_app", "federation_app", "gateway_app", "payments_app"),
    *("sessions_app", "signing_app", "telemetry", "uamp", "uamp_project", "uap", "upp"),
)
# The builders of errors beside `raise`, as modules call them.
REFUSING: Final = re.compile(
    r"(?:^|\.)_?(?:invalid|malformed|problem|refuse|refused|refusal|unauthenticated|unsupported|"
    r"too_large|Problem|\w+Error|\w+Refused|Bad\w+|Invalid\w+)$"
)
DOCSTRING: Final = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""')
CONTINUED: Final = re.compile(r"""["']\s*\n\s*[fr]*["']""")
LITERAL: Final = re.compile(r"""\"((?:[^"\\\n]|\\.)+)\"|'((?:[^'\\\n]|\\.)+)'""")
PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}")
DOCUMENTS: Final = sorted(
    path.relative_to(words.ROOT).as_posix()
    for path in (*words.ROOT.glob("*.md"), *(words.ROOT / "docs").rglob("*.md"))
)


def sentences(text: str) -> Iterator[str]:
    """Yield the prose of a page of Markdown, without its code."""
    prose = re.sub(r"^(```|~~~).*?^\1|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    for line in prose.splitlines():
        yield from (piece.strip() for piece in re.split(r"(?<=[.!?:;])\s|\|", line))


def odd(texts: Iterable[str], refused: Iterable[Wording] = REFUSED) -> list[tuple[str, str]]:
    """Return the texts that are refused, with what to write instead."""
    rules = tuple(refused)
    return [
        (text, better) for text in texts for pattern, _, better in rules if re.search(pattern, text)
    ]


def sources(rules: Iterable[Wording]) -> Iterator[tuple[str, ast.Module]]:
    """Yield the product's modules that may have a refused phrase: their names and syntax trees."""
    phrases = [re.compile(pattern, re.MULTILINE) for pattern, _, _ in rules]
    for name, texts in literals().items():
        if any(phrase.search(texts) for phrase in phrases):
            yield name, ast.parse((words.ROOT / name).read_text(encoding="utf-8"))


@cache
def literals() -> dict[str, str]:
    """Return the literals of each module, one per line, without those in triple quotes."""
    found = {}
    for path in (path for room in ROOMS for path in (words.ROOT / room).rglob("*.py")):
        if "migrations" not in path.parts and not path.stem.endswith(("_pb2", "_pb2_grpc")):
            source = DOCSTRING.sub("", path.read_text(encoding="utf-8"))
            texts = (part for pair in LITERAL.findall(CONTINUED.sub("", source)) for part in pair)
            found[path.relative_to(words.ROOT).as_posix()] = "\n".join(
                PLACEHOLDER.sub("{x}", text) for text in texts if " " in text
            )
    return found


def messages(tree: ast.AST) -> Iterator[str]:
    """Yield the literals of a tree but for docstrings; values in f-strings are `{x}`."""
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inner.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            inner.update(id(part) for part in ast.walk(node) if part is not node)
            if id(node) not in inner:
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "{x}"
                    for part in node.values
                )
        elif isinstance(node, ast.Constant) and id(node) not in inner:
            yield str(node.value)


def refusals(tree: ast.AST) -> Iterator[str]:
    """Yield the messages of the errors that a module raises or builds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) or (
            isinstance(node, ast.Call) and REFUSING.search(ast.unparse(node.func))
        ):
            yield from messages(node)


@pytest.mark.parametrize(("pattern", "example", "better"), [*REFUSED, *IN_MESSAGES, *IN_REFUSALS])
def test_a_pattern_finds_its_example_and_not_what_to_write(
    pattern: str, example: str, better: str
) -> None:
    assert re.search(pattern, example)
    assert not re.search(pattern, better)


@pytest.mark.parametrize("domain", ["django", "djangojs"])
def test_the_interface_is_worded_idiomatically(domain: str) -> None:
    texts = (
        text
        for message in words.catalogue_of(domain, "de")
        for text in ([message.id] if isinstance(message.id, str) else message.id)
    )
    assert odd(texts, (*REFUSED, *IN_MESSAGES)) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_page_of_the_documentation_is_worded_idiomatically(name: str) -> None:
    assert odd(sentences((words.ROOT / name).read_text(encoding="utf-8"))) == []


def test_messages_to_clients_are_worded_idiomatically() -> None:
    rules = (*REFUSED, *IN_MESSAGES)
    found = {name: odd(messages(tree), rules) for name, tree in sources(rules)}
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_refusals_say_what_is_wrong() -> None:
    found = {name: odd(refusals(tree), IN_REFUSALS) for name, tree in sources(IN_REFUSALS)}
    assert {name: texts for name, texts in found.items() if texts} == {}
