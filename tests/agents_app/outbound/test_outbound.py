"""Requests to addresses that others chose, over real sockets."""

import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from agents_app.outbound.guard import Fetched, TooLarge, Unreachable, fetch
from agents_app.outbound.look_ups import look_up
from agents_app.outbound.rules import Policy
from agents_app.tools.registry import ToolCancelled
from tests.agents_app.web_server import WebServer, web_server, write_certificate

LIMIT = 100_000


@pytest.fixture
def web() -> Iterator[WebServer]:
    """Run a server that may be asked."""
    with web_server() as running:
        yield running


def policy(*servers: WebServer, places: Sequence[str] = (), seconds: float = 5) -> Policy:
    allowed = {server.place for server in servers} | set(places)
    return Policy(allowed=frozenset(allowed), seconds=seconds, max_bytes=LIMIT)


def refusal(url: str, allowed: Policy) -> str:
    """Return the reason that the log has; the asker learns nothing of it."""
    with pytest.raises(Unreachable) as caught:
        fetch(url, allowed)
    assert str(caught.value) == "The address cannot be reached."
    return caught.value.reason


def test_a_page_is_fetched_and_its_progress_reported(web: WebServer) -> None:
    url = web.page("/a?b=c", "x" * LIMIT, "Text/HTML; Charset='Latin-1'; x=y")
    hosts: list[str] = []
    reported: list[tuple[int, int | None]] = []
    fetched = fetch(
        url,
        policy(web),
        headers={"User-Agent": "tests"},
        on_host=hosts.append,
        on_bytes=lambda received, total: reported.append((received, total)),
    )
    assert fetched == Fetched(
        url=url, status=200, media_type="text/html", charset="Latin-1", data=b"x" * LIMIT
    )
    assert hosts == ["127.0.0.1"]
    assert reported[-1] == (LIMIT, LIMIT)
    ((path, headers),) = web.asked
    assert (path, headers["Host"], headers["User-Agent"]) == ("/a?b=c", web.place, "tests")


def test_a_forbidden_address_is_never_connected_to(web: WebServer) -> None:
    assert refusal(web.url("/"), policy()) == "'http' is not https"
    secure = f"https://{web.place}/"
    assert "is not one of" in refusal(secure, policy())
    assert web.asked == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001", "localhost", "[::1]"]
)
def test_no_way_of_writing_loopback_gets_there(host: str, web: WebServer) -> None:
    reason = refusal(f"https://{host}:8443/", policy(web))
    assert "leads to" in reason or "was not found" in reason


def test_a_name_is_looked_up_once_and_the_connection_goes_there(web: WebServer) -> None:
    web.page("/", "here")
    answers = [["127.0.0.1"], ["127.0.0.2"]]
    place = f"page.example:{web.port}"
    fetched = fetch(
        f"http://{place}/",
        policy(places=[place]),
        resolve=lambda _host, _port, _seconds: answers.pop(0),
    )
    assert fetched.data == b"here"
    assert len(answers) == 1
    assert web.asked[0][1]["Host"] == place


def test_a_name_with_one_private_address_is_refused_before_any_connection(
    web: WebServer,
) -> None:
    with pytest.raises(Unreachable) as caught:
        fetch(
            "https://page.example/",
            policy(web),
            resolve=lambda _host, _port, _seconds: ["93.184.216.34", "127.0.0.1"],
        )
    assert caught.value.reason == "page.example leads to 127.0.0.1"


def test_the_next_address_is_tried_when_one_takes_no_connection(web: WebServer) -> None:
    web.page("/", "here")
    place = f"page.example:{web.port}"
    fetched = fetch(
        f"http://{place}/",
        policy(places=[place]),
        resolve=lambda _host, _port, _seconds: ["127.0.0.9", "::1", "127.0.0.1"],
    )
    assert fetched.data == b"here"


# --- TLS ---


def test_tls_names_the_host_and_checks_its_certificate(tmp_path: Path) -> None:
    path = tmp_path / "certificate.pem"
    trust = write_certificate(path, "page.example")
    with web_server(path) as web:
        web.page("/", "secret")
        places = [f"{host}:{web.port}" for host in ("page.example", "other.example")]
        allowed = policy(places=places)

        def resolve(_host: str, _port: int, _seconds: float) -> Sequence[str]:
            return ["127.0.0.1"]

        fetched = fetch(f"https://{places[0]}/", allowed, tls=trust, resolve=resolve)
        assert fetched.data == b"secret"
        assert (web.names, web.asked[0][1]["Host"]) == (["page.example"], places[0])
        with pytest.raises(Unreachable) as other:
            fetch(f"https://{places[1]}/", allowed, tls=trust, resolve=resolve)
        assert "CERTIFICATE_VERIFY_FAILED" in other.value.reason
        with pytest.raises(Unreachable) as stranger:
            fetch(f"https://{places[0]}/", allowed, resolve=resolve)
        assert "CERTIFICATE_VERIFY_FAILED" in stranger.value.reason
        assert len(web.asked) == 1


# --- Redirects ---


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(status: int, web: WebServer) -> None:
    web.page("/b/c", "end")
    web.redirect("/b/a", "c#part", status)
    fetched = fetch(web.redirect("/", "/b/a", status), policy(web))
    assert (fetched.url, fetched.data) == (web.url("/b/c"), b"end")


def test_three_redirects_are_followed_and_a_fourth_is_not(web: WebServer) -> None:
    web.page("/0", "end")
    for number in range(1, 5):
        web.redirect(f"/{number}", f"/{number - 1}")
    assert fetch(web.url("/3"), policy(web)).data == b"end"
    assert "more than 3 redirects" in refusal(web.url("/4"), policy(web))


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("https://169.254.169.254/latest/meta-data/", "leads to 169.254.169.254"),
        ("http://169.254.169.254/latest/meta-data/", "not https"),
        ("https://[::ffff:169.254.169.254]/", "leads to ::ffff:"),
        ("//127.0.0.1:9/", "not https"),
        ("file:///etc/passwd", "no host"),
        ("https://[::1", "invalid URL"),
        ("http://x\x01y/", "invalid URL"),
    ],
)
def test_a_redirect_is_checked_like_the_first_address(
    location: str, reason: str, web: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert reason in refusal(web.redirect("/", location), policy(web))
    assert reason in caplog.text
    assert len(web.asked) == 1


def test_credentials_stay_with_the_place_they_were_for(web: WebServer) -> None:
    request_headers = {"Authorization": "Bearer x", "Cookie": "a=b", "X-Other": "1"}
    with web_server() as other:
        web.redirect("/", "/same")
        web.redirect("/same", other.url("/there"))
        other.redirect("/there", web.url("/back"))
        web.page("/back", "end")
        fetch(web.url("/"), policy(web, other), headers=request_headers)
        reported = [
            (headers["Authorization"], headers["Cookie"], headers["X-Other"])
            for _, headers in (*web.asked[:2], *other.asked, *web.asked[2:])
        ]
    assert reported == [("Bearer x", "a=b", "1")] * 2 + [(None, None, "1")] * 2


def test_a_redirect_without_a_place_is_an_answer(web: WebServer) -> None:
    assert fetch(web.page("/", status=304), policy(web)).status == 304


# --- How much and how long ---


def test_a_body_at_the_limit_comes_and_one_past_it_does_not(web: WebServer) -> None:
    assert len(fetch(web.page("/", b"x" * LIMIT), policy(web)).data) == LIMIT
    with pytest.raises(TooLarge, match="more than 100000 bytes"):
        fetch(web.page("/", b"x" * (LIMIT + 1)), policy(web))


def test_a_body_that_says_it_is_too_large_is_not_waited_for(web: WebServer) -> None:
    def silent(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(LIMIT + 1))
        request.end_headers()
        web.stop.wait(5)

    web.pages["/"] = silent
    with pytest.raises(TooLarge):
        fetch(web.url("/"), policy(web, seconds=1))


def test_a_body_that_never_ends_is_cut_off(web: WebServer) -> None:
    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        while not web.stop.is_set():
            request.wfile.write(b"x" * 4096)

    web.pages["/"] = endless
    with pytest.raises(TooLarge):
        fetch(web.url("/"), policy(web))


def test_a_packed_body_is_unpacked_up_to_the_limit(web: WebServer) -> None:
    fetched = fetch(
        web.page("/", gzip.compress(b"y" * LIMIT), Content_Encoding="gzip"), policy(web)
    )
    assert fetched.data == b"y" * LIMIT
    bomb = gzip.compress(b"y" * (50 * 1024 * 1024))
    assert len(bomb) < LIMIT
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            fetch(web.page("/", bomb, Content_Encoding="gzip"), policy(web))
        assert tracemalloc.get_traced_memory()[1] < 10 * 1024 * 1024
    finally:
        tracemalloc.stop()
    broken = web.page("/", b"\x1f\x8bno", Content_Encoding="gzip")
    assert "error" in refusal(broken, policy(web))
    assert "encoding is b'br'" in refusal(web.page("/", b"x", Content_Encoding="br"), policy(web))


@pytest.mark.parametrize("silent_in", ["connection", "head", "body"])
def test_a_slow_answer_ends_at_the_deadline(silent_in: str, web: WebServer) -> None:
    def drip(request: BaseHTTPRequestHandler) -> None:
        if silent_in == "body":
            request.send_response(200)
            request.end_headers()
        else:
            request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not web.stop.wait(0.1):
            # Each byte comes well within any limit for one read.
            request.wfile.write(b"x")

    web.pages["/"] = drip
    began = time.monotonic()
    if silent_in == "connection":
        # A listener that accepts nothing: its queue is full.
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
            port = full.getsockname()[1]
            first = socket.create_connection(("127.0.0.1", port))
            with first:
                url = f"http://127.0.0.1:{port}/"
                reason = refusal(url, policy(places=[f"127.0.0.1:{port}"], seconds=0.5))
    else:
        reason = refusal(web.url("/"), policy(web, seconds=0.5))
    assert "too long" in reason or "imed out" in reason or "no address accepted" in reason
    # Without its limit it waits for minutes.
    assert 0.4 < time.monotonic() - began < 30


def test_a_resolver_that_is_silent_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def silent(*_args: object, **_named: object) -> list[object]:
        ended.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    began = time.monotonic()
    with pytest.raises(Unreachable) as caught:
        look_up("page.example", 443, 0.1)
    assert caught.value.reason == "page.example was not looked up in time"
    assert time.monotonic() - began < 15
    ended.set()


@pytest.mark.parametrize("host", ["x" * 64 + ".example", "no such name", "a..b"])
def test_an_invalid_host_name_is_not_found(host: str) -> None:
    with pytest.raises(Unreachable) as caught:
        look_up(host, 443, 5)
    assert "was not found" in caught.value.reason


def test_a_closed_port_and_nonsense_look_the_same(web: WebServer) -> None:
    web.pages["/"] = lambda request: request.wfile.write(b"SSH-2.0-server\r\n")
    assert "RemoteProtocolError" in refusal(web.url("/"), policy(web))
    with socket.create_server(("127.0.0.1", 0)) as gone:
        place = f"127.0.0.1:{gone.getsockname()[1]}"
    assert "no address accepted a connection" in refusal(f"http://{place}/", policy(places=[place]))


def test_a_listener_may_end_it(web: WebServer) -> None:
    def stop(_received: int, _total: int | None) -> None:
        raise ToolCancelled

    with pytest.raises(ToolCancelled):
        fetch(web.page("/", "x"), policy(web), on_bytes=stop)
