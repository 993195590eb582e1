"""The schemas and the printed reference: true to the types, and up to date."""

import ast
import json
import re
import runpy
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import uamp
from uamp.documents import reference
from uamp.documents.examples import EXAMPLES
from uamp.documents.schema import event_schema, schema_names
from uamp.events import CLIENT_EVENTS, SERVER_EVENTS, SYSTEM_EVENTS
from uamp.limits import limit_table

_PRINTED = Path(__file__).parents[3] / "docs" / "protocol"


def test_every_event_has_a_schema_and_an_example() -> None:
    names = {*CLIENT_EVENTS, *SERVER_EVENTS, *SYSTEM_EVENTS}
    assert schema_names() == sorted(names)
    assert set(EXAMPLES) == names


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_takes_its_example_and_refuses_another_type(name: str) -> None:
    schema = event_schema(name)
    assert schema["$id"] == f"/schemas/uamp/1.0/{name}.json"
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    frame = json.loads(uamp.encode(EXAMPLES[name]))
    assert list(validator.iter_errors(frame)) == []
    assert not validator.is_valid({**frame, "type": "another"})
    assert not validator.is_valid({**frame, "event_id": 5})


def test_a_schema_has_its_meaning_without_the_margin_of_the_source() -> None:
    definition = event_schema("session.update")["$defs"]["SessionUpdate"]
    assert definition["description"] == (
        "Refresh tokens or change the configuration (UAMP §5.2, §10.3).\n\n"
        "Without ``session_id`` it concerns every session of the connection."
    )
    assert "description" not in event_schema("ping")["$defs"]["Ping"]["properties"]["event_id"]


def test_an_unknown_type_has_no_schema() -> None:
    with pytest.raises(KeyError):
        event_schema("x.y")


def test_every_limit_is_listed_with_its_default() -> None:
    rows = limit_table()
    assert [name for name, _, _ in rows] == list(uamp.Limits.__struct_fields__)
    assert all(default == getattr(uamp.Limits(), name) for name, default, _ in rows)
    assert all(about.endswith(".") for _, _, about in rows)


def test_the_printed_reference_is_up_to_date() -> None:
    assert reference.main([str(_PRINTED), "--check"]) == 0
    assert {path.name for path in _PRINTED.iterdir()} == set(reference.pages())


@pytest.mark.parametrize("name", reference.pages())
def test_every_link_of_the_reference_leads_to_a_heading(name: str) -> None:
    pages = reference.pages()
    anchors = {
        page: {
            re.sub(r"[^a-z0-9_ -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        }
        for page, text in pages.items()
    }
    for page, anchor in re.findall(r"\]\(([a-z]*\.?m?d?)(?:#([^)]*))?\)", pages[name]):
        assert anchor in anchors[page or name] or (page in pages and not anchor)


def test_every_frame_of_the_reference_decodes() -> None:
    frames = re.findall(r"```json\n(.*?)\n```", reference.pages()["events.md"], re.DOTALL)
    decoded = [uamp.decode(frame, sender="any") for frame in frames]
    assert len(frames) == len(EXAMPLES)
    assert decoded[: -len(SYSTEM_EVENTS)] == list(EXAMPLES.values())[: -len(SYSTEM_EVENTS)]


def test_every_code_and_limit_is_printed() -> None:
    pages = reference.pages()
    assert all(f"| `{code}` |" in pages["errors.md"] for code in uamp.ErrorCode)
    assert all(f"`{code}`" in pages["errors.md"] for code in uamp.PaymentErrorCode)
    assert all(f"| `{name}` |" in pages["limits.md"] for name in uamp.Limits.__struct_fields__)
    assert "| `queued` | `start` | `in_progress` |" in pages["states.md"]
    assert "    queued --> in_progress: start\n" in pages["states.md"]
    assert "    failed --> [*]\n" in pages["states.md"]


def test_the_reference_says_what_is_required_and_what_is_always_sent() -> None:
    pages = reference.pages()
    assert "| `text` | string | yes |" in pages["events.md"]
    assert "| `uamp_version` | string | no, but always sent |" in pages["events.md"]
    assert "| `percent` | number from 0 to 100 | no |" in pages["events.md"]
    assert (
        "| `output` | list of [ContentItem](#contentitem) | no, but always sent |"
        in (pages["types.md"])
    )
    assert "| `image` | string or [MediaUrl](#mediaurl) | yes |" in pages["types.md"]
    assert (
        "| `agents` | list of at most 50 strings, each of at most 128 characters |"
        in (pages["events.md"])
    )
    assert "| `voices` | list of strings | no |" in pages["types.md"]
    assert "| `logit_bias` | object of at most 300 entries | no |" in pages["types.md"]
    assert "| `extensions` | object | no |" in pages["types.md"]
    assert "| `proof` | any | no |" in pages["types.md"]


def test_a_stale_page_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "protocol"
    assert reference.main([str(folder), "--check"]) == 1
    assert not folder.exists()
    assert reference.main([str(folder)]) == 0
    assert reference.main([str(folder), "--check"]) == 0
    capsys.readouterr()
    (folder / "errors.md").write_text("old", encoding="utf-8")
    assert reference.main([str(folder), "--check"]) == 1
    assert capsys.readouterr().err == "out of date: errors.md\n"
    assert (folder / "errors.md").read_text(encoding="utf-8") == "old"


def test_the_command_explains_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["reference", "--help"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(reference.__file__, run_name="__main__")
    assert caught.value.code == 0
    assert "--check" in capsys.readouterr().out


def test_the_package_imports_nothing_that_does_or_knows_the_outside() -> None:
    package = Path(uamp.__file__).parent
    # The client and the command line are for programs: they connect, wait and print.
    # The spool has temporary files.
    outside = {
        package / "__main__.py",
        package / "client",
        package / "command_line",
        package / "logs" / "spool.py",
    }
    imported = set()
    for path in package.rglob("*.py"):
        if outside & {path, *path.parents}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module))
    rooms = {name.partition(".")[0] for name in imported}
    pure = "base64 binascii collections contextlib enum functools hashlib inspect json math re"
    pure += " types typing"
    # Signatures and heads of logs: keys, JWS, the canonical form, and times that are read.
    signatures = "cryptography datetime jwt rfc8785"
    command = "argparse pathlib sys"  # for uamp.documents.reference alone, which writes the pages
    assert rooms == {"uamp", "msgspec", *pure.split(), *signatures.split(), *command.split()}
