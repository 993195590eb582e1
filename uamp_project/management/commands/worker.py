"""`manage.py worker`: the Celery workers of some queues, or of all."""

import signal
import threading
from argparse import ArgumentParser
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from uamp_project.database_clock import warn_of_clock
from uamp_project.embedded.broker import prepare_folders
from uamp_project.embedded.worker import WorkerSupervisor, queues_with_work
from uamp_project.management.migrated import require_migrations
from uamp_project.management.stored_keys import require_readable_keys


class Command(BaseCommand):
    """Supervises a Celery worker for each queue until SIGTERM or Ctrl-C."""

    help = (
        "Run workers for long-running tools, webhooks and readings (linked pages, transcripts), and"
        " restart any that die. SIGTERM or Ctrl-C ends them; another worker takes over their tools."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which queues, and how much at once."""
        names = [queue.name for queue in settings.CELERY_TASK_QUEUES]
        parser.add_argument(
            "queues",
            nargs="*",
            choices=[*names, []],
            metavar="queue",
            help=f"{', '.join(names)}; by default all that have work",
        )
        parser.add_argument(
            "--threads",
            type=int,
            help="how many tasks of a queue run at once (tools 4, webhooks 16)",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Run until a signal."""
        require_migrations()
        warn_of_clock()
        require_readable_keys()
        connections.close_all()
        prepare_folders()
        queues = options["queues"] or queues_with_work()
        workers = [WorkerSupervisor(name, threads=options["threads"]) for name in queues]
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        for worker in workers:
            worker.start()
        self.stdout.write(f"Working on {', '.join(queues)}. Press Ctrl-C to stop.")
        self.stdout.flush()
        while not stopping.wait(60):
            pass
        with ThreadPoolExecutor() as ending:
            list(ending.map(WorkerSupervisor.stop, workers))
