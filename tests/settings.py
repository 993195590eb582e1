"""The settings of the tests: the product's own, on a temporary DATA_DIR.

SQLite in a file (threads share it), or PostgreSQL when TEST_DATABASE_URL names a server. The
environment is set before the product's settings read it: pytest-django loads this module before
any conftest.
"""

import atexit
import os
import shutil
import tempfile

# The processes of tools are children of the tests and read these settings too: same folder, same
# database.
_PARENT = os.environ.get("UAMP_TEST_PROCESS", "")
if not _PARENT:
    os.environ["UAMP_TEST_PROCESS"] = str(os.getpid())
    os.environ["DATA_DIR"] = tempfile.mkdtemp(prefix="uamp-test-")
    atexit.register(shutil.rmtree, os.environ["DATA_DIR"], ignore_errors=True)
os.environ["DATABASE_URL"] = os.environ.get("TEST_DATABASE_URL", "")
os.environ["SECRET_KEY"] = "tests-only-" + "0" * 50
# A test database does not outlive the machine; FULL is checked by the tests of the settings.
os.environ.setdefault("SQLITE_SYNCHRONOUS", "OFF")
for _name in ("REDIS_URL", "DEBUG", "HTTPS", "UAMP_LAYER_ROLE"):
    os.environ.pop(_name, None)

from uamp_project.settings import *  # noqa: E402, F403 the settings read that environment
from uamp_project.settings import DATA_DIR, DATABASES  # noqa: E402 as above

# A name of this process alone: several runs may share a PostgreSQL.
_NAME = (
    f"test_uamp_{os.environ['UAMP_TEST_PROCESS']}"
    if os.environ["DATABASE_URL"]
    else DATA_DIR / "test.sqlite3"
)
DATABASES["default"]["TEST"] = {"NAME": str(_NAME)}
if _PARENT:
    DATABASES["default"]["NAME"] = str(_NAME)

CHANNEL_LAYERS = {
    "default": {"BACKEND": "uamp_project.embedded.layer.EmbeddedChannelLayer", "CONFIG": {}}
}
CELERY_BROKER_URL = "memory://"
CELERY_BROKER_TRANSPORT_OPTIONS = {"polling_interval": 0.01}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
