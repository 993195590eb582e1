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
# Caddy before these versions: `trust_pool` has another name, and `strict_sni_host` refuses all of
# HTTP/3 (https://github.com/caddyserver/caddy/issues/5078).
TRUST_POOL: Final = [2, 8, 0]
STRICT_HTTP3: Final = [2, 7, 0]


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
    if _version("nginx", "-v") < HTTP2_DIRECTIVE:
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


def caddyfile_for_http3() -> str:
    """Return the Caddyfile, without what stops HTTP/3 in an old version; skip without Caddy."""
    site = CADDYFILE.read_text(encoding="utf-8")
    if _version("caddy", "version") < STRICT_HTTP3:
        return site.replace("strict_sni_host on", "strict_sni_host insecure_off")
    return site


def caddyfile_for_certificates(authorities: Path) -> str:
    """Return the Caddyfile with what docs/envelopes.md adds for the certificates of clients."""
    page = (ROOT / "docs" / "envelopes.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^\tclient_auth \{\n.*?^\t\}\n", page, re.MULTILINE | re.DOTALL)
    (header,) = re.findall(r"^\theader_up .*\n", page, re.MULTILINE)
    block = block.replace("/etc/uamp/peers.pem", str(authorities))
    if _version("caddy", "version") < TRUST_POOL:
        block = block.replace("trust_pool file", "trusted_ca_cert_file")
    site = CADDYFILE.read_text(encoding="utf-8").replace("\ttls {\n", f"\ttls {{\n{block}", 1)
    return re.sub(r"(^\treverse_proxy \{\$UPSTREAMS.*\n)", rf"\1{header}", site, flags=re.MULTILINE)


def _version(program: str, option: str) -> list[int]:
    if shutil.which(program) is None:
        pytest.skip(f"{services.OPTIONAL_PROGRAM}: {program}")
    done = subprocess.run(  # noqa: S603 a proxy from the PATH
        [program, option],
        check=True,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
    )
    version = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout + done.stderr)
    assert version is not None
    return [*map(int, version.groups())]


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
    folder: Path, *, web: Sequence[str] = (UNUSED,), grpc: str = UNUSED, site: str = ""
) -> Iterator[RunningProxy]:
    """Run Caddy in front of these servers until the end of the block; skip without Caddy.

    `site` is the text of another Caddyfile.
    """
    if shutil.which("caddy") is None:
        pytest.skip(f"{services.OPTIONAL_PROGRAM}: caddy")
    port = services.free_port()
    # Other tests run at the same time: neither the port of its API nor that of http is shared.
    options = f"{{\n\tadmin off\n\thttp_port {services.free_port()}\n"
    path = folder / "Caddyfile"
    path.write_text((site or CADDYFILE.read_text(encoding="utf-8")).replace("{\n", options, 1))
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
