"""The servers with backpressure and deadlines, each in a process of its own, over raw sockets."""

import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.uamp_project.servers.served import MIB, Served, open_raw


def test_frames_are_echoed_unchanged_even_empty_ones(serve: Callable[..., Served]) -> None:
    with connect(f"ws://127.0.0.1:{serve().port}/echo") as ws:
        for message in ("text", "", b"bytes", b"", "ä" * 1000):
            ws.send(message)
            assert ws.recv(timeout=60) == message
        # No permessage-deflate: it costs memory per socket, and bombs need it.
        assert ws.response is not None
        assert "Sec-WebSocket-Extensions" not in ws.response.headers


def test_a_close_of_the_application_keeps_its_code_and_reason(
    serve: Callable[..., Served],
) -> None:
    with connect(f"ws://127.0.0.1:{serve().port}/echo") as ws:
        ws.send("close")
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)

    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "asked for")


def test_a_frame_at_the_limit_passes_and_one_byte_more_closes_with_1009(
    serve: Callable[..., Served],
) -> None:
    with connect(f"ws://127.0.0.1:{serve().port}/echo", max_size=None) as ws:
        ws.send("x" * 8 * MIB)
        assert len(ws.recv(timeout=60)) == 8 * MIB
        ws.send("x" * (8 * MIB + 1))
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


def test_a_reader_that_stops_holds_up_its_sender_not_the_memory(
    serve: Callable[..., Served],
) -> None:
    served = serve()
    before = psutil.Process(served.process.pid).memory_info().rss
    with open_raw(served.port, "/flood") as raw:
        frame_count = int(served.last("taken").split()[1])
        grown = psutil.Process(served.process.pid).memory_info().rss - before

        # What the kernel buffers on both sides is all that goes; Daphne alone takes everything.
        assert frame_count < 200
        assert grown < 20 * MIB
        # And it goes on when the reader does.
        for _ in range(400):
            raw.recv(65536)
        assert int(served.last("taken").split()[1]) > frame_count


@pytest.mark.sampled(1)
@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_of_the_pings_of_a_reader_that_stops_the_latest_is_answered_when_it_reads(
    serve: Callable[..., Served], server: str
) -> None:
    served = serve(server=server)
    with open_raw(served.port, "/flood") as raw, raw.makefile("rb") as come:
        while come.readline() != b"\r\n":
            pass
        served.last("taken")
        for number in range(300):
            payload = str(number).encode()
            raw.sendall(bytes([0x89, 0x80 | len(payload), 0, 0, 0, 0]) + payload)
        raw.sendall(bytes([0x81, 0x81, 0, 0, 0, 0]) + b"x")
        served.line("received")
        pongs: list[bytes] = []
        frames = 0
        while not pongs or frames < 300:
            head = come.read(2)
            size = head[1] if head[1] < 126 else struct.unpack(">Q", come.read(8))[0]
            payload = come.read(size)
            frames += 1
            if head[0] == 0x8A:
                pongs.append(payload)
        assert pongs == [b"299"]


def test_a_reader_that_stays_away_is_closed(serve: Callable[..., Served]) -> None:
    served = serve(stall=1)
    with open_raw(served.port, "/flood"):
        assert served.line("closed") == "closed 1006"


def test_a_response_waits_for_its_reader_and_ends_without_one(serve: Callable[..., Served]) -> None:
    served = serve(stall=3)
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        raw.connect(("127.0.0.1", served.port))
        raw.sendall(b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

        assert int(served.last("taken").split()[1]) < 200
        assert served.line("closed") == "closed http.disconnect"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_a_client_that_floods_a_slow_application_is_held_up(
    serve: Callable[..., Served], server: str
) -> None:
    served = serve(server=server)
    before = psutil.Process(served.process.pid).memory_info().rss
    payload = b"x" * 65536
    frame = b"\x82\xff" + struct.pack(">Q", len(payload)) + bytes(4) + payload
    with open_raw(served.port, "/slow") as raw:
        raw.recv(65536)
        raw.settimeout(1)
        sent_frames = 0
        with suppress(TimeoutError):
            while sent_frames < 2000:
                raw.sendall(frame)
                sent_frames += 1
        grown = psutil.Process(served.process.pid).memory_info().rss - before

    assert sent_frames < 400
    assert grown < 20 * MIB


def test_a_port_in_use_is_reported(serve: Callable[..., Served]) -> None:
    port = serve().port
    program = (
        "from uamp_project.servers.daphne_server import BackpressureServer as S\n"
        f"s = S(None, host='127.0.0.1', port={port}, drain=None,"
        " finish=None, ready=None, body_bytes_max=1)\n"
        "s.run()\nprint(s.failure)"
    )
    done = subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert "Address already in use" in done.stdout
