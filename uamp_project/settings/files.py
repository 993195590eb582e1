"""Folders: the source tree or the installed assets, DATA_DIR, static files, uploaded content."""

import contextlib
import os
import tomllib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from uamp_project.settings.environment import folder, integer, string, switch

_CHECKOUT = Path(__file__).resolve().parents[2]
# A wheel contains the templates, translations and static files here.
_ASSETS = Path(__file__).resolve().parents[1] / "assets"
_IS_INSTALLED = _ASSETS.is_dir()
BASE_DIR = _ASSETS if _IS_INSTALLED else _CHECKOUT


def _version() -> str:
    if _IS_INSTALLED:
        return metadata.version("uamp-server")
    return str(tomllib.loads((_CHECKOUT / "pyproject.toml").read_text())["project"]["version"])


def _default_data_dir() -> Path:
    if not _IS_INSTALLED:
        return _CHECKOUT / "var"
    # A relative path is ignored, as the XDG specification demands.
    home = Path(string("XDG_DATA_HOME"))
    return (home if home.is_absolute() else Path("~/.local/share").expanduser()) / "uamp-server"


UAMP_VERSION = _version()
# Only the server's user can read its files, from the first byte on: the database and its journals,
# contents, keys and sockets. An existing DATA_DIR is closed to other users as well.
os.umask(0o077)
DATA_DIR = folder("DATA_DIR", _default_data_dir())
if DATA_DIR.stat().st_mode & 0o077:
    # Another user's folder cannot be changed; the system check W011 reports it.
    with contextlib.suppress(PermissionError):
        DATA_DIR.chmod(0o700)

STATIC_URL = "/static/"
if _IS_INSTALLED:
    # All files share one digest, because modules import each other by relative URLs.
    STATIC_URL = f"/static/{(BASE_DIR / 'static.digest').read_text().strip()}/"
    SERVESTATIC_MAX_AGE = 31_536_000
STATIC_ROOT = DATA_DIR / "staticfiles"
# ServeStatic warns about a missing folder, although the finders need no collected files.
STATIC_ROOT.mkdir(exist_ok=True)
STATICFILES_DIRS = [BASE_DIR / "static"]
SERVESTATIC_USE_FINDERS = True
# Whether the chat page loads its bundle in static/dist, where that matches its sources.
UAMP_BUNDLED_PAGES = switch("UAMP_BUNDLED_PAGES", "1")
MEDIA_ROOT = DATA_DIR / "content"
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
# How long a signed URL of a content is valid.
UAMP_CONTENT_URL_SECONDS = integer("UAMP_CONTENT_URL_SECONDS", 900, minimum=1, maximum=10**9)
# A bucket of S3 for contents; without one they are in MEDIA_ROOT (chat_app/contents/bucket.py).
UAMP_S3_BUCKET = string("UAMP_S3_BUCKET")
UAMP_S3_ENDPOINT = string("UAMP_S3_ENDPOINT")
UAMP_S3_REGION = string("UAMP_S3_REGION")
UAMP_S3_KEY_ID = string("UAMP_S3_KEY_ID")
UAMP_S3_SECRET_KEY = string("UAMP_S3_SECRET_KEY")
if UAMP_S3_BUCKET and find_spec("storages") is None:
    raise ImproperlyConfigured(
        "UAMP_S3_BUCKET needs an extra: pip install --find-links dist 'uamp-server[s3]'"
    )
# Content is never served from MEDIA_URL: /api/content/<uuid> checks the reader's access.
STORAGES = {
    "default": {
        "BACKEND": "chat_app.contents.bucket.BucketStorage"
        if UAMP_S3_BUCKET
        else "django.core.files.storage.FileSystemStorage"
    },
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
