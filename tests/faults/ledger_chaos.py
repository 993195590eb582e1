"""Kills, cuts and repeats around the ledger, and counts what is left: `make chaos`.

Workers do random operations with stable keys (`ledger_worker`); meanwhile workers are killed with
SIGKILL, PostgreSQL's backends are terminated, and the answers to COMMITs are cut off
(`commit_proxy`). At the end every key that was tried has one answer. The journals say what was
acknowledged: an effect that is not in the database is lost, one that is there twice is doubled.
The exit status is 0 when nothing is lost or doubled and the audit is clean.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import django
import psycopg

from tests import services as outside
from tests.faults import ledger_worker
from tests.faults.commit_proxy import CommitProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.context import ForkProcess

WORKERS = 4
FUNDS = 2_000
CUT_CHANCE = 0.01


@contextmanager
def sqlite(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the environment of a run on a new SQLite file."""
    yield {"DATABASE_URL": "", "LEDGER_DATABASE": str(folder / "chaos.sqlite3")}


@contextmanager
def postgres(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the environment of a run on a new PostgreSQL database, dropped at the end."""
    del folder
    url = outside.postgres()
    if url is None:
        sys.exit("No PostgreSQL answers; set TEST_DATABASE_URL.")
    name = f"uamp_chaos_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield {"DATABASE_URL": url, "LEDGER_DATABASE": name}
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


class Crew:
    """The workers; one that dies before its time is started again. Forked, they start at once."""

    def __init__(self, folder: Path, people: list[int], port: int | None) -> None:
        self.folder = folder
        self.people = people
        self.port = port
        self.stop = folder / "stop"
        self.killed = 0
        self.died = 0
        self.running = {str(number): self.start(str(number)) for number in range(WORKERS)}

    def start(self, seed: str) -> ForkProcess:
        """Start a worker on its journal."""
        process = multiprocessing.get_context("fork").Process(
            target=ledger_worker.work,
            args=(self.folder / f"{seed}.journal", seed, self.stop, self.people, self.port),
        )
        process.start()
        return process

    def look_after(self) -> None:
        """Start those again that died; a worker that failed by itself ends the run."""
        for seed, process in self.running.items():
            code = process.exitcode
            if code is None or code == 0:
                continue
            if code > 0:
                sys.exit(f"worker {seed} failed")
            self.died += 1
            self.running[seed] = self.start(seed)

    def kill_one(self, choice: random.Random) -> None:
        """Kill a worker wherever it is."""
        choice.choice(list(self.running.values())).kill()
        self.killed += 1

    def finish(self, seconds: float) -> None:
        """Let every worker answer its open orders, and end."""
        self.stop.touch()
        deadline = time.monotonic() + seconds
        while any(process.exitcode != 0 for process in self.running.values()):
            if time.monotonic() > deadline:
                sys.exit("the workers did not end")
            self.look_after()
            time.sleep(0.05)


def torment(crew: Crew, seconds: float, admin_url: str, database: str) -> int:
    """Kill workers and backends for a while; return how many backends were terminated."""
    choice = random.Random(7)  # noqa: S311 not for secrets
    deadline = time.monotonic() + seconds
    terminated = 0
    while time.monotonic() < deadline:
        time.sleep(choice.uniform(0.2, 0.8))
        crew.look_after()
        # A worker takes a second to start: most of the time a worker has to run.
        if choice.random() < 0.3:
            crew.kill_one(choice)
        if admin_url:
            with psycopg.connect(admin_url, autocommit=True) as connection:
                terminated += len(
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE datname = %s AND pid <> pg_backend_pid()"
                        " ORDER BY random() LIMIT 1",
                        [database],
                    ).fetchall()
                )
    return terminated


def verdict(folder: Path) -> tuple[Counter[str], list[str]]:
    """Compare the journals with the database; return counts and what is wrong."""
    from payments_app.models import Hold, Idempotency, Transfer  # noqa: PLC0415 after setup
    from payments_app.services import audit  # noqa: PLC0415 as above

    counts: Counter[str] = Counter()
    wrong: list[str] = []
    orders: dict[str, dict[str, Any]] = {}
    answers: dict[str, list[tuple[str, list[str]]]] = {}
    for journal in folder.glob("*.journal"):
        for text in journal.read_text().splitlines():
            line = json.loads(text)
            key = line["order"]["key"]
            if line["line"] == "try":
                orders[key] = line["order"]
            else:
                answers.setdefault(key, []).append((line["line"], line["ids"]))
    effects: dict[str, list[str]] = {}
    for pk, memo in Transfer.objects.values_list("pk", "memo"):
        effects.setdefault(memo, []).append(pk)
    for pk, purpose in Hold.objects.values_list("pk", "purpose"):
        effects.setdefault(purpose, []).append(pk)
    stored_keys = set(Idempotency.objects.values_list("key", flat=True))
    for key in orders:
        counts["orders"] += 1
        there = sorted(effects.get(key, []))
        replies = answers.get(key, [])
        if not replies:
            wrong.append(f"{key}: no answer")
        # A refusal is not kept, so it may be followed by a success; a success is final.
        done = [ids for kind, ids in replies if kind == "done"]
        counts["done" if done else "refused"] += 1
        counts["asked again"] += len(replies) - 1
        if done and (key not in stored_keys or not set(done[0]) <= set(there)):
            counts["lost"] += 1
            wrong.append(f"{key}: lost {done[0]}")
        if len(there) > (len(done[0]) if done else 0) or any(sorted(i) != there for i in done):
            counts["doubled"] += 1
            wrong.append(f"{key}: acknowledged {done}, there are {there}")
    report = audit()
    wrong += [
        f"audit: {mismatch.check}: {mismatch.subject} by {mismatch.off_by}"
        for mismatch in report.mismatches
    ]
    return counts, wrong


def main() -> int:
    """Run; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.ledger_chaos")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--mutant", help="take a guard out; see tests.payments_app.ledger.mutants")
    chosen = parser.parse_args()
    kind = {"sqlite": sqlite, "postgres": postgres}[chosen.database]
    with tempfile.TemporaryDirectory(prefix="uamp-chaos-") as name, kind(Path(name)) as extra:
        folder = Path(name)
        os.environ.update(
            extra,
            DATA_DIR=name,
            DJANGO_SETTINGS_MODULE="tests.faults.ledger_settings",
            LOG_LEVEL="ERROR",
        )
        django.setup()
        if chosen.mutant is None:
            return run(chosen.database, chosen.seconds, folder)
        from tests.payments_app.ledger import mutants  # noqa: PLC0415 after django.setup

        with mutants.applied(mutants.MUTANTS[chosen.mutant]):
            return run(chosen.database, chosen.seconds, folder)


def run(database: str, seconds: float, folder: Path) -> int:
    """Make the ledger, torment it, judge it."""
    from django.core.management import call_command  # noqa: PLC0415 after django.setup
    from django.db import connections  # noqa: PLC0415 as above

    from payments_app import services  # noqa: PLC0415 as above
    from payments_app.money import Money  # noqa: PLC0415 as above

    call_command("migrate", verbosity=0)
    people = []
    for number in range(4):
        account = services.ensure_account(code=f"user:chaos{number}:USD", kind="user")
        services.top_up(
            key=f"funds:{number}",
            account=account.id,
            amount=Money(FUNDS),
            provider="chaos",
            external_id=f"funds:{number}",
        )
        people.append(account.id)
    connections.close_all()
    url, proxy = os.environ["DATABASE_URL"], None
    if url:
        parts = urlsplit(url)
        proxy = CommitProxy(parts.hostname or "127.0.0.1", parts.port or 5432, CUT_CHANCE)
    crew = Crew(folder, people, proxy.port if proxy else None)
    try:
        terminated = torment(crew, seconds, url, os.environ["LEDGER_DATABASE"])
        crew.finish(60)
    finally:
        for process in crew.running.values():
            process.kill()
        if proxy:
            proxy.close()
    counts, wrong = verdict(folder)
    connections.close_all()
    sys.stdout.write(
        f"{database}, {seconds:g} s: {counts['orders']} orders, {counts['done']} done,"
        f" {counts['refused']} refused, {counts['asked again']} asked again; {crew.died} deaths"
        f" ({crew.killed} by the killer), {terminated} backends terminated,"
        f" {proxy.cut if proxy else 0} answers cut;"
        f" {counts['lost']} lost, {counts['doubled']} doubled,"
        f" audit {'not clean' if any(w.startswith('audit') for w in wrong) else 'clean'}\n"
    )
    for line in wrong[:20]:
        sys.stdout.write(f"  {line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
