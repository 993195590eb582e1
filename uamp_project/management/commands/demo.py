"""`manage.py demo`: prepare people, agents and a chat for trying out the server."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from uamp_project import demo
from uamp_project.management.migrated import require_migrations


class Command(BaseCommand):
    """Prepares the demo; a second call changes nothing and prints the same."""

    help = (
        "Prepare the people alice, bob and admin, agents and a chat for trying out the server, and"
        " print the people's passwords and API keys, and the token with which a program answers as"
        " the connected agent. Running it again changes nothing and prints the same, except"
        " passwords that have been changed since and keys that have been revoked."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options for JSON output or none."""
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--quiet", action="store_true", help="print nothing")
        parser.add_argument(
            "--starting",
            action="store_true",
            help="the server starts with this environment: if no model is configured in it, a"
            " script answers for the assistant",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Prepare and print."""
        require_migrations()
        try:
            prepared = demo.prepare(is_starting=options["starting"])
        except demo.NameIsTakenError as error:
            raise CommandError(f"{error}; the demo was not prepared") from error
        if options["quiet"]:
            return
        if options["json"]:
            self.stdout.write(json.dumps(prepared, indent=2))
            return
        for user in prepared["users"]:
            self.stdout.write(
                f"{user['username']:8} password {user['password'] or '(chosen since)'}"
            )
            self.stdout.write(f"{'':8} API key  {user['api_key'] or '(create one on /account)'}")
        for agent in prepared["agents"]:
            self.stdout.write(f"@{agent['name']:10} {agent['description']}")
            if "connect_token" in agent:
                token = agent["connect_token"] or "(create one on /account)"
                self.stdout.write(f"{'':11} connect token  {token}")
