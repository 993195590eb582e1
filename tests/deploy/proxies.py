"""nginx and Caddy with the files of deploy/, on free ports before servers of a test."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from tests import services
from tests.agents_app.web_server import write_certificate
from tests.deploy.expected import PORT, ROOT
from tests.programs import PROGRAM_SECONDS, Program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CADDYFILE: Final = ROOT / "deploy" / "caddy" / "Caddyfile"
NGINX: Final = ROOT / "deploy" / "nginx" / "uamp.conf"
# The file needs this version; those before take HTTP/2 as an option of `listen`.
HTTP2_DIRECTIVE: Final = [1, 25, 1]
UNUSED: Final = "127.0.0.1:9"


@dataclass(frozen=True)
class RunningProxy:
    """A proxy that answers to `localhost` on a port, and the certificate of its authority."""

    port: int
    authority: Path

    @property
    def place(self) -> str:
        """Its host and port."""
        return f"localhost:{self.port}"

    @property
    def trust(self) -> ssl.SSLContext:
        """A context that trusts its certificate."""
        return ssl.create_default_context(cafile=self.authority)

    def is_ready(self) -> bool:
        """Return whether it has its certificate and accepts connections."""
        if not self.authority.exists():
            return False
        try:
            with (
                socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection,
                self.trust.wrap_socket(connection, server_hostname="localhost"),
            ):
                return True
        except OSError:
            return False


def write_nginx_files(
    folder: Path, port: int, *, web: Sequence[str] = (UNUSED,), grpc: str = UNUSED
) -> Path:
    """Write uamp.conf with these servers, and a whole configuration around it; return its path."""
    certificate = folder / "certificate.pem"
    write_certificate(certificate, "localhost")
    site = NGINX.read_text(encoding="utf-8")
    (line,) = re.findall(rf"^    (server 127\.0\.0\.1:{PORT} .*;)$", site, re.MULTILINE)
    lines = [line.replace(f"127.0.0.1:{PORT}", place) for place in web]
    site = site.replace(line, "\n    ".join(lines)).replace("127.0.0.1:50051", grpc)
    site = re.sub(r"/etc/uamp/\w+\.pem", str(certificate), site)
    site = re.sub(r"\blisten (\[::\]:)?443\b", rf"listen \g<1>{port}", site)
    site = re.sub(r"\blisten (\[::\]:)?80\b", rf"listen \g<1>{services.free_port()}", site)
    if _nginx_version() < HTTP2_DIRECTIVE:
        site = site.replace("    http2 on;\n", "").replace(" ssl;\n", " ssl http2;\n")
    (folder / "uamp.conf").write_text(site)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    path = folder / "nginx.conf"
    path.write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log stderr; events {{}}"
        f" http {{ access_log off; {paths} include {folder}/uamp.conf; }}"
    )
    return path


def _nginx_version() -> list[int]:
    done = subprocess.run(
        ["nginx", "-v"],  # noqa: S607 from the PATH
        check=True,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
    )
    (version,) = re.findall(r"nginx/(\d+)\.(\d+)\.(\d+)", done.stderr)
    return [*map(int, version)]


@contextmanager
def running_nginx(
    folder: Path, *, web: Sequence[str] = (UNUSED,), grpc: str = UNUSED
) -> Iterator[RunningProxy]:
    """Run nginx in front of these servers until the end of the block; skip without nginx."""
    if shutil.which("nginx") is None:
        pytest.skip(f"{services.OPTIONAL_PROGRAM}: nginx")
    port = services.free_port()
    path = write_nginx_files(folder, port, web=web, grpc=grpc)
    command = ("nginx", "-p", folder, "-c", path)
    with Program(*command, log=folder / "nginx.log") as process:
        proxy = RunningProxy(port, folder / "certificate.pem")
        process.wait_until(proxy.is_ready)
        yield proxy


@contextmanager
def running_caddy(
    folder: Path, *, web: Sequence[str] = (UNUSED,), grpc: str = UNUSED
) -> Iterator[RunningProxy]:
    """Run Caddy in front of these servers until the end of the block; skip without Caddy."""
    if shutil.which("caddy") is None:
        pytest.skip(f"{services.OPTIONAL_PROGRAM}: caddy")
    port = services.free_port()
    # Other tests run at the same time: neither the port of its API nor that of http is shared.
    options = f"{{\n\tadmin off\n\thttp_port {services.free_port()}\n"
    path = folder / "Caddyfile"
    path.write_text(CADDYFILE.read_text(encoding="utf-8").replace("{\n", options, 1))
    environment = {
        **os.environ,
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "DOMAIN": f"localhost:{port}",
        "UPSTREAMS": " ".join(web),
        "GRPC": grpc,
    }
    authority = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
    command = ("caddy", "run", "--config", path, "--adapter", "caddyfile")
    with Program(*command, env=environment, log=folder / "caddy.log") as process:
        proxy = RunningProxy(port, authority)
        process.wait_until(proxy.is_ready)
        yield proxy
