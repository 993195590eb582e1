"""The product's settings on the database that LEDGER_DATABASE names, for programs of the tests."""

import os

from uamp_project.settings import *  # noqa: F403 the product's own
from uamp_project.settings import DATABASES

DATABASES["default"]["NAME"] = os.environ["LEDGER_DATABASE"]
# One connection a process, closed when it says so: a pool would bring back one that was cut.
DATABASES["default"]["OPTIONS"].pop("pool", None)
