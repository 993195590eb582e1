"""Django settings, one module for each subject, read from environment variables.

The same settings serve both ways to run; `DATABASE_URL` and `REDIS_URL` choose. docs/settings.md
describes every variable. A value that cannot be used raises ImproperlyConfigured at the start.
"""

# Django reads the upper-case names of this module; each subject defines its own.
# `files` comes first: it sets the umask before anything is written.
from uamp_project.settings.files import *  # noqa: F403, I001 settings are names of this module
from uamp_project.settings.agents import *  # noqa: F403 as above
from uamp_project.settings.calls import *  # noqa: F403 as above
from uamp_project.settings.database import *  # noqa: F403 as above
from uamp_project.settings.federation import *  # noqa: F403 as above
from uamp_project.settings.framework import *  # noqa: F403 as above
from uamp_project.settings.identity import *  # noqa: F403 as above
from uamp_project.settings.logs import *  # noqa: F403 as above
from uamp_project.settings.messaging import *  # noqa: F403 as above
from uamp_project.settings.payments import *  # noqa: F403 as above
from uamp_project.settings.quotas import *  # noqa: F403 as above
from uamp_project.settings.rest import *  # noqa: F403 as above
from uamp_project.settings.security import *  # noqa: F403 as above
from uamp_project.settings.turns import *  # noqa: F403 as above
