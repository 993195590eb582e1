"""Requests posted to an address that a client names."""

import pytest

from agents_app.outbound.guard import Posted, TooLarge, Unreachable, post
from agents_app.outbound.rules import Policy
from tests.http_server import LocalServer, QuietHandler, serving


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1"])
def test_nothing_is_posted_to_a_name_that_leads_to_a_private_address(address: str) -> None:
    with pytest.raises(Unreachable) as refused:
        post(
            "https://example.org:8443/hook",
            Policy(seconds=2),
            body=b"{}",
            headers={},
            resolve=lambda _host, _port, _seconds: [address],
        )

    assert refused.value.reason == f"example.org leads to {address}"


class Answering(QuietHandler):
    """Answers each POST with its own body, with status 409."""

    def do_POST(self) -> None:  # noqa: N802 named by http.server
        """Answer."""
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(409)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_an_answer_is_read_only_if_it_is_wanted_and_fits() -> None:
    with serving(LocalServer(Answering)) as server:
        place = server.origin.removeprefix("http://")
        policy = Policy(allowed=frozenset({place}), seconds=60, max_bytes=5)
        assert post(server.origin, policy, body=b"three", headers={}) == Posted(409)
        answer = post(server.origin, policy, body=b"three", headers={}, reads_answer=True)
        assert answer == Posted(409, data=b"three")
        with pytest.raises(TooLarge):
            post(server.origin, policy, body=b"eleven", headers={}, reads_answer=True)
