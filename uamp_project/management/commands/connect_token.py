"""`manage.py connect_token USERNAME AGENT`: make a connect token for a person's agent."""

import json
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from agents_app import connections
from agents_app.rest.rights import ALL
from sessions_app.access import connect_tokens, keys
from uamp_project.management.migrated import require_migrations


class Command(BaseCommand):
    """Creates a token, and the connected agent if its name is unused."""

    help = (
        "Create a connect token, with which a program registers one of a person's agents, and print"
        " it."
        " An unused name becomes a private connected agent of theirs (docs/agents.md)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take whose agent it is, and its name."""
        parser.add_argument("username")
        parser.add_argument("agent")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        """Store and print the token."""
        require_migrations()
        name = User.normalize_username(options["username"])
        user = User.objects.filter(username=name, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no account named {name}.")
        try:
            agent, made = connect_tokens.issue(user.pk, options["agent"], by=ALL)
        except connections.NameNotYours as error:
            raise CommandError(f"{name} may not connect {options['agent']}.") from error
        except connections.TooManyConnectedAgents as error:
            raise CommandError(f"{name} has the maximum number of connected agents.") from error
        except keys.TooManyKeys as error:
            raise CommandError(f"{name} has the maximum number of keys.") from error
        except ValidationError as error:
            raise CommandError(connections.problem_of(error)) from error
        if options["json"]:
            printed = {"agent": agent.name, "connect_token": made.secret}
            self.stdout.write(json.dumps(printed))
            return
        self.stdout.write(made.secret)
