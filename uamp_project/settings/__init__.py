"""Django settings, one module per subject, read from environment variables.

The same settings serve both ways to run, which `DATABASE_URL` and `REDIS_URL` select.
docs/settings.md describes every variable. An invalid value raises ImproperlyConfigured at start-up.
"""

# Django reads the upper-case names of this module, which each subject defines. `files` comes first,
# because it sets the umask before anything is written.
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
