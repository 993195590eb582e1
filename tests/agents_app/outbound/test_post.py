"""What is posted to an address that a client names."""

import pytest

from agents_app.outbound.guard import Unreachable, post
from agents_app.outbound.rules import Policy


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
