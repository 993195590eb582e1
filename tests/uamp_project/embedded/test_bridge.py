"""The bridge: layer messages from another process, over the unix socket."""

import asyncio
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import Program
from uamp_project.embedded.bridge import HubIsRunningError, Kind, Spoke, socket_address
from uamp_project.embedded.layer import EmbeddedChannelLayer

# Sends what the lines of its standard input name, and answers each with its count of drops.
SPOKE = """
import asyncio, os, sys
from uamp_project.embedded.layer import EmbeddedChannelLayer
os.environ["UAMP_LAYER_ROLE"] = "spoke"
layer = EmbeddedChannelLayer(socket_path=sys.argv[1])
for line in sys.stdin:
    kind, name, text = line.split()
    send = layer.group_send if kind == "group" else layer.send
    asyncio.run(send(name, {"type": "uamp.event", "text": text, "tags": ["a"], "n": 1, "no": None}))
    print(layer.dropped, flush=True)
"""


class SpokeProcess:
    """Another process that sends into the layer."""

    def __init__(self, path: Path) -> None:
        self._process = Program(
            *(sys.executable, "-c", SPOKE, path), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def send(self, kind: str, name: str, text: str) -> int:
        """Send one message; return how many the process has dropped so far."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{kind} {name} {text}\n")
        self._process.stdin.flush()
        with self._process.limited_reads():
            return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.close_input()


def hub_layer(path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedChannelLayer:
    with monkeypatch.context() as patch:
        patch.setenv("UAMP_LAYER_ROLE", "hub")
        return EmbeddedChannelLayer(socket_path=str(path))


def sends(path: Path, kind: Kind, name: str) -> bool:
    spoke = Spoke(path)
    was_sent = spoke.send(kind, name, {"n": 1})
    spoke.close()
    return was_sent


def expected(text: str) -> dict[str, object]:
    return {"type": "uamp.event", "text": text, "tags": ["a"], "n": 1, "no": None}


async def test_messages_of_another_process_arrive_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run" / "layer.sock"
    layer = hub_layer(path, monkeypatch)
    channel = await layer.new_channel()
    await layer.group_add("chat.1", channel)
    spoke = SpokeProcess(path)
    for n in range(10):
        assert await asyncio.to_thread(spoke.send, "group", "chat.1", f"part{n}") == 0
    assert await asyncio.to_thread(spoke.send, "channel", channel, "alone") == 0

    async with asyncio.timeout(10):
        messages = [await layer.receive(channel) for _ in range(11)]

    assert messages == [*(expected(f"part{n}") for n in range(10)), expected("alone")]
    spoke.close()
    layer.close()


async def test_a_spoke_finds_a_hub_that_restarted_and_counts_what_it_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "layer.sock"
    spoke = SpokeProcess(path)
    assert await asyncio.to_thread(spoke.send, "group", "chat.1", "early") == 1
    for text in ("first", "second"):
        layer = hub_layer(path, monkeypatch)
        channel = await layer.new_channel()
        await layer.group_add("chat.1", channel)
        assert await asyncio.to_thread(spoke.send, "group", "chat.1", text) in (1, 2)
        async with asyncio.timeout(10):
            assert await layer.receive(channel) == expected(text)
        layer.close()
        assert not path.exists()
    assert await asyncio.to_thread(spoke.send, "group", "chat.1", "late") == 2
    spoke.close()


def test_the_folder_of_the_socket_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = hub_layer(tmp_path / "run" / "layer.sock", monkeypatch)

    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
    layer.close()


def test_a_socket_without_a_listener_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "layer.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))

    layer = hub_layer(path, monkeypatch)

    assert sends(path, "group", "chat.1")
    layer.close()


def test_a_second_hub_on_the_same_socket_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = hub_layer(tmp_path / "layer.sock", monkeypatch)
    with pytest.raises(HubIsRunningError):
        hub_layer(tmp_path / "layer.sock", monkeypatch)

    assert sends(tmp_path / "layer.sock", "group", "chat.1")
    layer.close()


@pytest.mark.parametrize(
    "junk", [b"\x00\x00", b"\xff\xff\xff\xff", b"\x00\x00\x00\x01\xc1", b"\x00\x00\x00\x05ab"]
)
async def test_a_bad_frame_ends_its_connection_only(
    junk: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "layer.sock"
    layer = hub_layer(path, monkeypatch)
    channel = await layer.new_channel()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(5)
        stranger.connect(str(path))
        stranger.sendall(junk)
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(1) == b""
    assert sends(path, "channel", channel)

    async with asyncio.timeout(10):
        assert await layer.receive(channel) == {"n": 1}
    layer.close()


async def test_a_spoke_cannot_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UAMP_LAYER_ROLE", "spoke")
    layer = EmbeddedChannelLayer(socket_path=str(tmp_path / "layer.sock"))
    with pytest.raises(RuntimeError, match="only sends"):
        await layer.new_channel()


def test_a_path_that_is_too_long_for_a_socket_gets_a_short_private_one(tmp_path: Path) -> None:
    path = tmp_path / ("deep" * 30) / "layer.sock"
    address = Path(socket_address(path))

    assert len(str(address)) <= 100
    assert socket_address(path) == str(address)
    assert stat.S_IMODE(address.parent.stat().st_mode) == 0o700
    address.parent.rmdir()


def test_a_message_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="too large"):
        Spoke(tmp_path / "layer.sock").send("group", "chat.1", {"text": "x" * 8_400_000})
