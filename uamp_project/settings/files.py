"""Folders: the source tree, DATA_DIR, static files and uploaded content."""

import contextlib
import os
from pathlib import Path

from uamp_project.settings.environment import folder, integer

BASE_DIR = Path(__file__).resolve().parents[2]
# Files of the server are readable by its user only, from their first byte on: the database and its
# journals, contents, keys, sockets. A DATA_DIR that existed before is closed to other users, too.
os.umask(0o077)
DATA_DIR = folder("DATA_DIR", BASE_DIR / "var")
if DATA_DIR.stat().st_mode & 0o077:
    # The folder of another user cannot be changed: the system check W011 reports it.
    with contextlib.suppress(PermissionError):
        DATA_DIR.chmod(0o700)

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "staticfiles"
# ServeStatic warns of a missing folder, although the finders need no collected files.
STATIC_ROOT.mkdir(exist_ok=True)
STATICFILES_DIRS = [BASE_DIR / "static"]
SERVESTATIC_USE_FINDERS = True
MEDIA_ROOT = DATA_DIR / "content"
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
# How long a signed address of a content works.
UAMP_CONTENT_URL_SECONDS = integer("UAMP_CONTENT_URL_SECONDS", 900, least=1, most=10**9)
# Content is never served from MEDIA_URL: /api/content/<uuid> checks who may read it.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
