"""The settings of the tests: the product's own, with a temporary DATA_DIR.

SQLite in a file (shared by threads), or PostgreSQL if TEST_DATABASE_URL names a server. The
environment is set before the product's settings read it: pytest-django loads this module before any
conftest. Each pytest-xdist worker has its own DATA_DIR and database.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

# TEST_PROCESS is "<pid>" in the process that runs pytest and "<pid>_gw0" in a pytest-xdist
# worker. Tool processes read these settings too, with the environment of the process that started
# them: they find the complete name, and use its folder and database. A worker finds the name of the
# process that started it, without its own number.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
_SUFFIX = f"_{WORKER}" if WORKER else ""
_FOUND = os.environ.get("TEST_PROCESS", "")
_IS_CHILD = bool(_FOUND) and _FOUND.endswith(_SUFFIX)
if not _FOUND:
    os.environ["TEST_PROCESS"] = str(os.getpid())
    os.environ["DATA_DIR"] = tempfile.mkdtemp(prefix="uamp-test-")
    atexit.register(shutil.rmtree, os.environ["DATA_DIR"], ignore_errors=True)
elif not _IS_CHILD:
    os.environ["TEST_PROCESS"] = _FOUND + _SUFFIX
    # Inside the folder of the process that started the workers, which removes it as a whole.
    os.environ["DATA_DIR"] = str(Path(os.environ["DATA_DIR"]) / WORKER)
    Path(os.environ["DATA_DIR"]).mkdir()
os.environ["DATABASE_URL"] = os.environ.get("TEST_DATABASE_URL", "")
os.environ["SECRET_KEY"] = "tests-only-" + "0" * 50
# A test database need not survive a crash; the tests of the settings check FULL.
os.environ.setdefault("SQLITE_SYNCHRONOUS", "OFF")
for _name in ("REDIS_URL", "DEBUG", "HTTPS", "UAMP_LAYER_ROLE"):
    os.environ.pop(_name, None)

from uamp_project.settings import *  # noqa: E402, F403 the settings read that environment
from uamp_project.settings import DATA_DIR, DATABASES  # noqa: E402 as above

# Shared by the processes of one run: the lock, and the database that workers copy.
RUN_FOLDER = DATA_DIR.parent if WORKER else DATA_DIR
# A name unique to this run: several runs may share a PostgreSQL. A worker's database has the name
# that Django gives to copies of a test database.
RUN_NAME = os.environ["TEST_PROCESS"].removesuffix(_SUFFIX)
if os.environ["DATABASE_URL"]:
    _NAME = f"test_uamp_{RUN_NAME}"
    _COPY = _NAME + _SUFFIX
else:
    _NAME = str(RUN_FOLDER / "test.sqlite3")
    _COPY = str(RUN_FOLDER / f"test{_SUFFIX}.sqlite3")
DATABASES["default"]["TEST"] = {"NAME": _NAME}
if _IS_CHILD:
    DATABASES["default"]["NAME"] = _COPY

CHANNEL_LAYERS = {
    "default": {"BACKEND": "uamp_project.embedded.layer.EmbeddedChannelLayer", "CONFIG": {}}
}
# The models of the tests are local servers.
UAMP_MODEL_ALLOW_HOSTS = ["127.0.0.1:*"]
UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
UAMP_PEER_LOOPBACK_HTTP = True
# A key is created for each agent that answers. RSA takes 60 ms of CPU; its own tests select it.
UAMP_SIGNATURE_ALGORITHM = "EdDSA"
# They cost nothing, and most tests call them as a visitor.
UAMP_ANONYMOUS_MODELS = True
CELERY_BROKER_URL = "memory://"
CELERY_BROKER_TRANSPORT = None
CELERY_BROKER_TRANSPORT_OPTIONS = {"polling_interval": 0.01}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
