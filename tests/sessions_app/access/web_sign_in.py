"""A person who signs in with a password, as a browser does: a cookie, and the pages' own Origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import httpx
from django.conf import settings

if TYPE_CHECKING:
    from types import TracebackType

    from tests.conftest import ServerAddress

LOGIN_PATH = "/login"
GOOD_PASSWORD = "password"


class WebSignIn:
    """A browser's cookies on a server, without the browser."""

    def __init__(self, server: ServerAddress, **options: object) -> None:
        headers = {"Origin": server.http}
        self.web = httpx.Client(
            base_url=server.http,
            headers=headers,
            timeout=90,
            trust_env=False,
            **options,  # type: ignore[arg-type]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.web.close()

    def try_to_sign_in(
        self, username: str, password: str = GOOD_PASSWORD, path: str = LOGIN_PATH
    ) -> httpx.Response:
        """Send the form of the login page, or of another page that has one like it."""
        if "csrftoken" not in self.web.cookies:
            self.web.get(path)
        return self.post(path, username=username, password=password)

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Send a form."""
        token = self.web.cookies["csrftoken"]
        return self.web.post(path, data={"csrfmiddlewaretoken": token, **fields})

    @property
    def headers(self) -> dict[str, str]:
        """The headers that the browser sends with the handshake of a socket or stream."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.web.cookies.items())
        return {"Cookie": cookie, "Origin": self.web.headers["Origin"]}

    @property
    def session_key(self) -> str:
        """The key of the Django session."""
        key: str = self.web.cookies[settings.SESSION_COOKIE_NAME]
        return key
