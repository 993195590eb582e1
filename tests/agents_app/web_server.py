"""A web server for tests: real sockets on 127.0.0.1, and pages that misbehave as configured."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.threads import join_threads

if TYPE_CHECKING:
    from email.message import Message
    from pathlib import Path

Page = Callable[[BaseHTTPRequestHandler], object]


@dataclass
class WebServer:
    """A running server; `asked` are the paths and headers of its requests."""

    port: int
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, Message]] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def place(self) -> str:
        """Host and port, as the setting of allowed hosts has them."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        """Return the address of a page."""
        return f"http://{self.place}{path}"

    def page(
        self,
        path: str,
        body: bytes | str = b"",
        content_type: str | None = "text/html; charset=utf-8",
        *,
        status: int = 200,
        **headers: str,
    ) -> str:
        """Serve a body with its length, and return its address."""
        data = body.encode() if isinstance(body, str) else body

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            if content_type is not None:
                request.send_header("Content-Type", content_type)
            request.send_header("Content-Length", str(len(data)))
            # It is closed after this answer: a client that reuses it finds it gone.
            request.send_header("Connection", "close")
            for name, value in headers.items():
                request.send_header(name.replace("_", "-"), value)
            request.end_headers()
            request.wfile.write(data)

        self.pages[path] = answer
        return self.url(path)

    def redirect(self, path: str, location: str, status: int = 302) -> str:
        """Serve a redirect, and return its address."""
        return self.page(path, status=status, Location=location)


@contextmanager
def web_server(certificate: Path | None = None) -> Iterator[WebServer]:
    """Run a server until the end; with a certificate it speaks TLS and keeps what it is called."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            running.asked.append((self.path, self.headers))
            self.close_connection = True
            try:
                running.pages[self.path](self)
            except OSError:
                # The client has had enough.
                return

        def do_POST(self) -> None:
            # What was sent is read: a connection that closes before it would be reset.
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 as in the base
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = False

        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing of handshakes that failed."""

    with Server(("127.0.0.1", 0), Handler) as server:
        running = WebServer(port=server.server_address[1])
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            context.sni_callback = lambda _socket, name, _context: running.names.append(name)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield running
        finally:
            running.stop.set()
            server.shutdown()
            join_threads([thread])


_DAY = timedelta(days=1)


def write_certificate(path: Path, *names: str, ends_in: timedelta = _DAY) -> ssl.SSLContext:
    """Write a certificate of these names with its key; return what trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + ends_in)
        .add_extension(
            x509.SubjectAlternativeName(
                [
                    x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
                    for name in names
                ]
            ),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    path.write_bytes(
        pem
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return ssl.create_default_context(cadata=pem.decode())
