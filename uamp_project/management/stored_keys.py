"""The signing keys in the database, checked before a process starts that signs with them."""

from typing import Final

from django.core.management.base import CommandError

from signing_app.owner_keys import unreadable_keys
from uamp_project.command import program_name

_NAMED: Final = 3


def require_readable_keys() -> None:
    """Raise CommandError if this SECRET_KEY cannot decrypt all signing keys.

    Such a process would leave answers unsigned.
    """
    kids = unreadable_keys()
    if not kids:
        return
    more = f" and {len(kids) - _NAMED} more" if len(kids) > _NAMED else ""
    raise CommandError(
        f"this SECRET_KEY cannot decrypt the signing keys {', '.join(kids[:_NAMED])}{more}. Use the"
        " SECRET_KEY of the other processes, and name earlier ones in SECRET_KEY_FALLBACKS. If it"
        f" is lost, run `{program_name()} rotate_signing_keys --unreadable`, which replaces these"
        " keys: what they signed stays valid"
    )
