"""The bot and the archiver of docs/programs.md run as they stand, also when the server restarts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests import services
from tests.client import wait_until
from tests.programs import PROGRAM_SECONDS, Program
from tests.uamp_project.serving import Serving, data_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["data_dir"]

# A program that starts again, and a server that takes over the answers of a killed one.
SECONDS = 120
PAGE = Path(__file__).resolve().parents[2] / "docs" / "programs.md"
(BOT, ARCHIVER) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def environment(port: int, key: str) -> dict[str, str]:
    """Return the environment of a program."""
    where = {"UAMP_URL": f"http://127.0.0.1:{port}", "UAMP_KEY": key}
    return {"PATH": os.environ["PATH"], "NO_PROXY": "*", **where}


def keys_of(data_dir: Path) -> dict[str, str]:
    """Return the API keys of the demo's people by name."""
    people = json.loads((data_dir / "demo.json").read_text())["users"]
    return {person["username"]: person["api_key"] for person in people}


def client(port: int, key: str) -> httpx.Client:
    """Return a client of a server, as a person; its caller closes it."""
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=headers, timeout=60)


def messages(web: httpx.Client, chat: str) -> Iterator[Any]:
    """Yield the messages of a chat, oldest first."""
    page: Any = {"has_more": True, "next_cursor": None}
    while page["has_more"]:
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else {}
        query = {"order": "asc", "limit": "200", **cursor}
        page = web.get(f"/chats/{chat}/messages", params=query).raise_for_status().json()
        yield from page["data"]


def new_chat(web: httpx.Client) -> str:
    """Create a chat with bob and two agents; return its id."""
    body = {"title": "Programs", "users": ["bob"], "agents": ["echo", "paid-echo"]}
    created: str = web.post("/chats", json=body).raise_for_status().json()["id"]
    return created


def key_of_a_bot(web: httpx.Client) -> Any:
    """Create a key with the scopes that the page names; return it with its secret."""
    key_request = {"name": "bot", "scopes": ["chats:read", "messages:write"]}
    return web.post("/keys", json=key_request).raise_for_status().json()


def revoke(web: httpx.Client, key_id: str, bot: Program) -> None:
    """Revoke the key of a bot, which then says so and ends."""
    web.delete(f"/keys/{key_id}").raise_for_status()
    wait_until(lambda: bot.poll() is not None, SECONDS)
    assert "no longer valid" in bot.output


def after_a_restore(state: Path, start: Callable[[], Program]) -> Program:
    """Start a bot whose place is of an epoch before a restore; it takes the end of the log."""
    state.write_text("other:1")
    bot = start()
    wait_until(lambda: not state.read_text().startswith("other"), SECONDS)
    return bot


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_bot_answers_each_message_once_though_it_and_the_server_restart(
    data_dir: Path, tmp_path: Path
) -> None:
    keys, port = keys_of(data_dir), services.free_port()
    (tmp_path / "bot.py").write_text(BOT)
    serving = Serving(data_dir, port=port)
    alice, bob = client(port, keys["alice"]), client(port, keys["bob"])
    chat, bot_key = new_chat(alice), key_of_a_bot(alice)
    programs: list[Program] = []

    def start() -> Program:
        log = tmp_path / f"bot-{len(programs)}.txt"
        program = Program(
            *(sys.executable, "bot.py", chat),
            log=log,
            cwd=tmp_path,
            env=environment(port, bot_key["secret"]),
        )
        programs.append(program)
        program.wait_until(lambda: "ready" in log.read_text(), "the bot is ready")
        return program

    def ask(*texts: str) -> None:
        for text in texts:
            body = {"content": f"!ask {text}"}
            bob.post(f"/chats/{chat}/messages", json=body).raise_for_status()

    def replies() -> list[str]:
        bot_message_ids = [
            message["id"] for message in messages(bob, chat) if message["name"] == "bob"
        ]
        reply_counts = Counter(
            message["reply_to"]["id"] for message in messages(bob, chat) if message["reply_to"]
        )
        assert set(reply_counts) <= set(bot_message_ids)
        return [
            message_id for message_id in bot_message_ids for _ in range(reply_counts[message_id])
        ]

    try:
        bot = after_a_restore(tmp_path / "bot.state", start)
        ask("echo one", "missing two", "echo three")
        # Its answer asks, too, and begins no chain.
        ask("echo !ask echo !ask echo chained", "everyone")
        wait_until(lambda: len(replies()) >= 1, SECONDS)
        bot.end(signal.SIGKILL)
        ask("echo four")
        bot = start()
        ask("echo five", "paid-echo six")
        wait_until(lambda: len(replies()) >= 6, SECONDS)
        serving.process.end(signal.SIGKILL)
        serving = Serving(data_dir, port=port)
        ask("echo seven")
        wait_until(lambda: len(replies()) >= 9, SECONDS)
        # Whatever is written twice would have come by the time that this is answered.
        ask("echo last")
        wait_until(lambda: len(replies()) >= 10, SECONDS)
        assert [count for _, count in Counter(replies()).items()] == [1] * 10
        texts = [message["content"] for message in messages(bob, chat) if message["reply_to"]]
        for word in ("one", "three", "four", "five", "seven", "last"):
            assert texts.count(word) == 1
        assert any("'missing'" in text for text in texts)
        assert "!ask <agent> <question>" in texts
        assert any("'payment'" in text for text in texts)
        bot_messages = [message for message in messages(bob, chat) if message["name"] == "bob"]
        assert all([r["count"] for r in message["reactions"]] == [1] for message in bot_messages)
        revoke(alice, bot_key["id"], bot)
    finally:
        for program in programs:
            program.end()
        alice.close()
        bob.close()
        serving.process.end()


def archive(port: int, key: str, folder: Path) -> Any:
    """Run the archiver; return what it counted."""
    done = subprocess.run(  # noqa: S603 our own example
        [sys.executable, "-c", ARCHIVER, str(folder)],
        env=environment(port, key),
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def copies(folder: Path) -> dict[str, Any]:
    """Return the copied messages by id."""
    files = [json.loads(path.read_text()) for path in folder.glob("*/0*.json")]
    return {message["id"]: message for message in files}


@pytest.mark.long
def test_the_second_run_of_the_archiver_copies_what_changed_and_leaves_the_same(
    data_dir: Path, tmp_path: Path
) -> None:
    key, serving = keys_of(data_dir)["alice"], Serving(data_dir, UAMP_READS_PER_MINUTE="60")
    web = client(serving.port, key)
    try:
        chat = new_chat(web)
        path, file = f"/chats/{chat}/messages", {"file": ("a.csv", b"a,b\n1,2\n", "text/csv")}
        content = web.post("/contents", files=file).raise_for_status().json()["content_id"]

        def say(**body: Any) -> Any:
            return web.post(path, json={"agents": [], **body}).raise_for_status().json()

        file_message_id = say(content="a file", attachments=[content])["message"]["id"]
        edited, deleted = (say(content=text)["message"]["id"] for text in ("first", "gone"))
        answer = say(content="hello", agents=["echo"], wait=60)["responses"][0]
        first = archive(serving.port, key, tmp_path / "copy")
        assert (first["bad"], first["files"]) == (0, 1)
        assert first["messages"] >= 5
        nothing = archive(serving.port, key, tmp_path / "copy")
        assert nothing == {"messages": 0, "files": 0, "bad": 0}

        web.patch(f"/messages/{edited}", json={"content": "second"}).raise_for_status()
        web.delete(f"/messages/{deleted}").raise_for_status()
        web.put(f"/messages/{file_message_id}/reactions", params={"emoji": "👍"}).raise_for_status()
        retried = web.post(f"/responses/{answer['id']}/retry", json={"wait": 60})
        assert retried.raise_for_status().json()["responses"][0]["status"] == "completed"
        say(content="a reply", thread=file_message_id)
        # Requests beyond the limit, which the next run waits out.
        while web.get("/me").status_code != 429:
            pass
        second = archive(serving.port, key, tmp_path / "copy")
        assert second["bad"] == 0
        assert 5 <= second["messages"] < first["messages"] + 3
        full_archive = archive(serving.port, key, tmp_path / "whole")
        assert full_archive["bad"] == 0
        assert copies(tmp_path / "copy") == copies(tmp_path / "whole")
        archived = copies(tmp_path / "copy")
        assert archived[edited]["content"] == "second"
        assert archived[deleted]["deleted_at"]
        assert [reaction["emoji"] for reaction in archived[file_message_id]["reactions"]] == ["👍"]
        assert [message["id"] for message in archived.values() if message["replaced_by"]]
        # A copy that was cut short is made again, and nothing is left beside it.
        copy = tmp_path / "copy" / chat / content
        copy.write_bytes(b"")
        (tmp_path / "copy" / chat / "state.json").unlink()
        again = archive(serving.port, key, tmp_path / "copy")
        assert (again["bad"], again["files"]) == (0, 1)
        assert copy.read_bytes() == b"a,b\n1,2\n"
        assert not list((tmp_path / "copy").rglob("*.part"))
    finally:
        web.close()
        serving.process.end()
