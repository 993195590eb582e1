"""The proxies pass on what the server reads, buffer nothing, and refuse less than the server."""

from __future__ import annotations

import re
from typing import Final

import pytest

from federation_app.rpc.reflection import AGENT_SERVICE, REFLECTION_SERVICES
from tests.deploy.expected import IDLE_SECONDS, PORT, ROOT, SETTINGS, UPLOAD_BYTES

pytestmark = pytest.mark.any_database

CADDYFILE: Final = (ROOT / "deploy" / "caddy" / "Caddyfile").read_text(encoding="utf-8")
NGINX: Final = (ROOT / "deploy" / "nginx" / "uamp.conf").read_text(encoding="utf-8")
UNITS: Final = {"s": 1, "m": 60, "h": 3600}


def caddy(name: str) -> str:
    """Return the arguments of a directive of the Caddyfile."""
    (text,) = re.findall(rf"^\s*{name} (.+)$", CADDYFILE, re.MULTILINE)
    return str(text)


def nginx(name: str) -> set[str]:
    """Return the arguments of every directive of that name in nginx's configuration."""
    return set(re.findall(rf"^\s*{name}\s+(.+);$", NGINX, re.MULTILINE))


def nginx_calls() -> str:
    """Return the pattern of the paths that nginx passes on as calls of gRPC."""
    (pattern,) = re.findall(r"^    location ~ (\S+) \{$", NGINX, re.MULTILINE)
    return str(pattern)


def seconds(text: str) -> int:
    return int(text[:-1]) * UNITS[text[-1]]


def test_caddy_sends_to_processes_that_are_ready() -> None:
    assert f"{{$UPSTREAMS:127.0.0.1:{PORT}}}" in CADDYFILE
    assert caddy("health_uri") == "/readyz"
    assert seconds(caddy("keepalive")) < IDLE_SECONDS
    assert seconds(caddy("grace_period")) > int(SETTINGS["UAMP_GRACE_SECONDS"])
    # Sticky sessions are not needed.
    assert caddy("lb_policy") == "least_conn"


def test_caddy_ends_tls_1_3_alone_and_passes_grpc_on() -> None:
    assert caddy("protocols") == "tls1.3"
    assert caddy("strict_sni_host") == "on"
    paths = [f"/{name}/*" for name in (AGENT_SERVICE, *REFLECTION_SERVICES)]
    assert caddy("@grpc") == f"path {' '.join(paths)}"
    assert "reverse_proxy @grpc h2c://{$GRPC:127.0.0.1:50051} {" in CADDYFILE


def test_nginx_ends_tls_1_3_alone_and_passes_grpc_on() -> None:
    assert nginx("ssl_protocols") == {"TLSv1.3"}
    for name in (AGENT_SERVICE, *REFLECTION_SERVICES):
        assert re.search(nginx_calls(), f"/{name}/Method")
        assert not re.search(nginx_calls(), f"/chats/{name}/Method")
        assert not re.search(nginx_calls(), f"/{name.replace('.', 'x')}/Method")
    assert nginx("grpc_pass") == {"grpc://uamp_grpc"}
    assert "127.0.0.1:50051" in nginx("server")
    # Calls are answered over HTTP/2 alone; `listen … http2` is deprecated.
    assert nginx("http2") == {"on"}
    assert not any("http2" in text for text in nginx("listen"))
    assert {*map(seconds, nginx("grpc_read_timeout") | nginx("grpc_send_timeout"))} == {3600}


def test_both_accept_the_largest_upload() -> None:
    # Calls of gRPC send records as long as they last.
    (size,) = nginx("client_max_body_size") - {"0"}
    calls = NGINX.partition(f"location ~ {nginx_calls()} {{")[2].partition("}")[0]

    assert "client_max_body_size 0;" in calls
    assert "request_body @bodies {" in CADDYFILE
    assert caddy("@bodies") == f"not {caddy('@grpc')}"
    assert int(size.removesuffix("m")) * 2**20 > UPLOAD_BYTES + 2**20
    assert int(caddy("max_size").removesuffix("MB")) * 10**6 > UPLOAD_BYTES + 2**20


def test_nginx_replaces_the_headers_that_the_server_believes() -> None:
    headers = dict(text.split(maxsplit=1) for text in nginx("proxy_set_header"))

    assert headers == {
        "Host": "$http_host",
        "X-Forwarded-For": "$remote_addr",
        "X-Forwarded-Proto": "$scheme",
        "Upgrade": "$http_upgrade",
        "Connection": "$uamp_connection",
    }
    grpc = dict(text.split(maxsplit=1) for text in nginx("grpc_set_header"))
    assert grpc["X-Forwarded-For"] == "$remote_addr"


def test_nginx_streams_and_waits() -> None:
    (read,) = nginx("proxy_read_timeout")

    assert any(server.startswith(f"127.0.0.1:{PORT} ") for server in nginx("server"))
    assert nginx("proxy_http_version") == {"1.1"}
    assert nginx("proxy_buffering") == {"off"}
    assert seconds(read) >= 3600
    # One between the proxy and clients, one between it and the server.
    assert min(map(seconds, nginx("keepalive_timeout"))) < IDLE_SECONDS
