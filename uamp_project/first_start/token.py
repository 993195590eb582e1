"""The secret in the address of the setup page, kept in DATA_DIR until an account exists."""

import contextlib
import os
import secrets
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User

TOKEN_BYTES = 32


def setup_path() -> str | None:
    """Return the path of the setup page with its token; None once there are accounts."""
    if User.objects.exists():
        forget()
        return None
    return f"/setup?token={_token()}"


def is_token(text: str) -> bool:
    """Return whether a text is the token of this server, which has no accounts yet."""
    stored = _stored()
    is_same = secrets.compare_digest(text.encode(), stored.encode())
    return stored != "" and is_same and not User.objects.exists()


def forget() -> None:
    """Delete the token."""
    _path().unlink(missing_ok=True)


def _path() -> Path:
    return Path(settings.DATA_DIR) / "setup_token"


def _stored() -> str:
    try:
        return _path().read_text()
    except FileNotFoundError:
        return ""


def _token() -> str:
    """Return the token; of several processes that start at once, one makes it."""
    draft = _path().with_suffix(f".{os.getpid()}")
    draft.write_text(secrets.token_urlsafe(TOKEN_BYTES))
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, _path())
    finally:
        draft.unlink()
    return _stored()
