"""Contents are read from the server that the agent is connected to, and from no other address."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.http_server import LocalServer, QuietHandler, serving
from uamp.types.content import FileContent, ImageContent, MediaUrl, Message, TextContent
from uap.serving.contents import ServerContents

ONE, OTHER = (f"550e8400-e29b-41d4-a716-44665544000{number}" for number in (1, 2))


class Contents(QuietHandler):
    """Answers with the path and the key that it was asked with; one content is not there."""

    def do_GET(self) -> None:  # noqa: N802 the name that http.server calls
        """Answer."""
        if "missing" in self.path:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.end_headers()
        self.wfile.write(f"{self.path} {self.headers['Authorization']}".encode())


@pytest.fixture
def origin() -> Iterator[str]:
    with serving(LocalServer(Contents)) as server:
        yield server.origin


async def read(origin: str, url: str, content_id: str = ONE) -> tuple[bytes, str]:
    item = ImageContent(image=MediaUrl(url=url))
    inline = FileContent(file="QQ==", filename="a", mime_type="text/plain")
    messages = [Message(role="user", content_items=(TextContent(text="a"), inline, item))]
    async with httpx2.AsyncClient(trust_env=False) as http:
        return await ServerContents(http, origin, "key", messages).load(content_id)


async def test_a_content_is_read_with_its_signature_alone(origin: str) -> None:
    path = f"/api/content/{ONE}?signature=s1"

    for url in (path, f"{origin}{path}"):
        assert await read(origin, url) == (f"{path} None".encode(), "text/plain")


async def test_a_content_without_a_signature_is_read_with_the_token(origin: str) -> None:
    path = f"/api/content/{ONE}"

    assert await read(origin, path) == (f"{path} Bearer key".encode(), "text/plain")


@pytest.mark.parametrize("content_id", ["../v1/keys", f"{ONE}/../../v1/keys", "", f"{ONE}?a=b"])
async def test_an_invalid_content_id_is_never_requested(origin: str, content_id: str) -> None:
    with pytest.raises(LookupError):
        await read(origin, "https://example.org/picture.png", content_id)


@pytest.mark.parametrize("host", ["http://10.0.0.1", "https://example.org", "http://127.0.0.1:1"])
async def test_the_address_of_another_host_is_not_asked(origin: str, host: str) -> None:
    data, _ = await read(origin, f"{host}/api/content/{ONE}?signature=s1")

    assert data == f"/api/content/{ONE} Bearer key".encode()


async def test_a_missing_content_is_not_found(origin: str) -> None:
    with pytest.raises(LookupError):
        await read(origin, f"/api/content/{ONE}?signature=missing")
    with pytest.raises(LookupError):
        await read("http://127.0.0.1:1", "/", OTHER)
