"""Addresses that may be asked, against everything ever used to get around such a rule."""

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from agents_app.outbound.rules import (
    URL_CHARS,
    Policy,
    Target,
    Unreachable,
    check_addresses,
    check_url,
    current_policy,
    is_public,
)

PUBLIC = Policy()


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "1.1.1.1",
        "198.17.255.255",
        "192.88.98.1",
        "2606:4700:4700::1111",
        "2a00::1",
    ],
)
def test_public_addresses_may_be_asked(address: str) -> None:
    assert is_public(address)


# fmt: off
NOT_PUBLIC = [
    # loopback, this network, unspecified
    "127.0.0.1", "127.255.255.254", "0.1.2.3", "::1", "::",
    "0.0.0.0",  # noqa: S104 nothing listens here
    # private, carrier-grade NAT, link-local, unique local, site-local
    "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "169.254.1.1",
    "fe80::1", "fe80::1%lo", "fc00::1", "fd00::1", "fec0::1",
    # metadata of clouds
    "169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16",
    "fd00:ec2::254", "fd20:ce::254",
    # multicast, broadcast, reserved, documentation, benchmarks
    "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.51.100.1",
    "203.0.113.1", "198.18.0.1", "ff02::1", "ff0e::1", "2001:db8::1", "3fff::1", "100::1",
    "192.88.99.1",
    # IPv4 inside IPv6: mapped, compatible, NAT64, 6to4, Teredo
    "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::ffff:93.184.216.34", "::127.0.0.1", "::7f00:1",
    "64:ff9b::7f00:1", "64:ff9b::5db8:d822", "64:ff9b:1::7f00:1", "2002:7f00:1::",
    "2002:a9fe:a9fe::", "2001::f5ff:fffe", "2001:0:7f00:1::",
]
# fmt: on


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_no_other_address_may_be_asked(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_may_be_asked_inside_of_ipv6(ip: IPv4Address) -> None:
    high, low = int(ip) >> 16, int(ip) & 0xFFFF
    for form in ("::ffff:{}", "::{}", "64:ff9b::{}", "64:ff9b:1::{}", "2002:{}::", "2001::{}"):
        assert not is_public(form.format(f"{high:x}:{low:x}"))


def target(url: str = "https://page.example/", policy: Policy = PUBLIC) -> Target:
    return check_url(url, policy)


def refusal(url: str, policy: Policy = PUBLIC) -> str:
    with pytest.raises(Unreachable) as caught:
        check_url(url, policy)
    assert str(caught.value) == "The address cannot be reached."
    return caught.value.reason


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://page.example/a?b=c", "page.example", 443),
        ("HTTPS://Page.Example:8443", "page.example", 8443),
        ("https://page.example.:443/", "page.example", 443),
        ("https://bücher.example/ä", "xn--bcher-kva.example", 443),
        ("https://[2606:4700::1]/", "2606:4700::1", 443),
    ],
)
def test_https_on_its_ports_may_be_asked(url: str, host: str, port: int) -> None:
    place = target(url)
    assert (place.host, place.port, place.is_allowed) == (host, port, False)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://page.example/", "'http' is not https"),
        ("ftp://page.example/", "'ftp' is not https"),
        ("file:///etc/passwd", "has no host"),
        ("gopher://page.example/", "'gopher' is not https"),
        ("data:text/html,x", "has no host"),
        ("//page.example/", "'' is not https"),
        ("page.example", "has no host"),
        ("", "has no host"),
        ("https://", "has no host"),
        ("https://.:443/", "has no host"),
        ("https://page.example:80/", "port 80"),
        ("https://page.example:22/", "port 22"),
        ("https://page.example:0/", "port 0"),
        ("https://page.example:99999/", "port 99999"),
        ("https://page.example:x/", "not a URL"),
        ("https://user@page.example/", "user information"),
        ("https://user:word@page.example/", "user information"),
        ("https://page.example@127.0.0.1/", "user information"),
        ("https://page.example/#part", "fragment"),
        ("https://①②⑦.⓪.⓪.①/", "not a URL"),
        ("https://page.example\n/", "not a URL"),
        ("https://[::1/", "not a URL"),
        ("https://page.example/" + "x" * URL_CHARS, "characters"),
    ],
)
def test_other_urls_may_not(url: str, reason: str) -> None:
    assert reason in refusal(url)


def test_a_url_may_be_as_long_as_the_limit() -> None:
    start = "https://page.example/"
    assert target(start + "x" * (URL_CHARS - len(start))).host == "page.example"
    assert "2049 characters" in refusal(start + "x" * (URL_CHARS + 1 - len(start)))


def test_an_allowed_place_may_be_http_and_private_on_its_port_alone() -> None:
    policy = Policy(allowed=frozenset({"wiki.intranet:80", "127.0.0.1:9000"}))
    wiki = target("http://Wiki.intranet/", policy)
    assert (wiki.port, wiki.is_allowed) == (80, True)
    assert check_addresses(wiki, ["10.0.0.7"]) == ["10.0.0.7"]
    assert target("https://127.0.0.1:9000/", policy).is_allowed
    assert "not https" in refusal("http://wiki.intranet:8080/", policy)
    assert not target("https://wiki.intranet/", policy).is_allowed
    assert "ftp" in refusal("ftp://wiki.intranet:80/", policy)
    assert "user information" in refusal("http://a@wiki.intranet/", policy)


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("chat.example", True),
        ("CHAT.example.", True),
        ("a.inner.example", True),
        ("inner.example", True),
        ("other.example", False),
        ("xchat.example", False),
    ],
)
def test_the_server_does_not_ask_itself(host: str, *, is_ours: bool) -> None:
    policy = Policy(own_hosts=("chat.example", ".inner.example"))
    if is_ours:
        assert "is this server" in refusal(f"https://{host}/", policy)
    else:
        assert target(f"https://{host}/", policy).host == host


def test_every_address_of_a_name_must_be_public() -> None:
    public = ["93.184.216.34", "2606:4700::1"]
    assert check_addresses(target(), public) == public
    for bad in ("127.0.0.1", "fd00::1"):
        with pytest.raises(Unreachable) as caught:
            check_addresses(target(), [*public, bad])
        assert caught.value.reason == f"page.example leads to {bad}"
    with pytest.raises(Unreachable, match="cannot be reached"):
        check_addresses(target(), [])


def test_the_settings_are_the_policy(settings: Settings) -> None:
    settings.UAMP_FETCH_ALLOW_HOSTS = ["Wiki.intranet:80"]
    settings.UAMP_FETCH_SECONDS = 3
    settings.UAMP_FETCH_BYTES = 100
    settings.ALLOWED_HOSTS = ["chat.example", "*"]
    assert current_policy() == Policy(
        allowed=frozenset({"wiki.intranet:80"}),
        own_hosts=("chat.example",),
        seconds=3,
        max_bytes=100,
    )
