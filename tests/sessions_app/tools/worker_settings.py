"""Settings of a worker process under test: the product's own, the test's database and tools."""

import os

from tests.sessions_app.tools import long_tools
from uamp_project.settings import *  # noqa: F403 the product's settings, with two changes
from uamp_project.settings import DATABASES
from uamp_project.settings import UAMP_SERVER_TOOLS as PRODUCT_TOOLS

DATABASES["default"]["NAME"] = os.environ["WORKER_DATABASE"]
UAMP_SERVER_TOOLS = [*PRODUCT_TOOLS, *long_tools.PATHS]
