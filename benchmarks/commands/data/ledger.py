"""`python -m benchmarks ledger`: operations of the ledger per second, next to a floor.

The floor is a transaction that updates one row, in the same run and on the same connection: the
cost of any durable write. `x floor` is the ratio of its rate to the operation's. The hot account is
measured with all fees on one account and spread over its shards.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Final

from benchmarks import servers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

THREADS: Final = (1, 8)
HEAD: Final = f"{'':34}{'threads':>8}{'per second':>12}{'x floor':>9}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure on each available database."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks ledger", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], help="only this one")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each line")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.here:
        measure(options.seconds)
        return
    for database in [options.database] if options.database else ["sqlite", "postgresql"]:
        if database == "postgresql" and servers.postgres_url() is None:
            print("No PostgreSQL answers; set TEST_DATABASE_URL to measure it too.")
            continue
        print(f"\n{database}\n{HEAD}", flush=True)
        with tempfile.TemporaryDirectory(prefix="uamp-bench-") as folder:
            environment = {
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "uamp_project.settings",
                "DATA_DIR": folder,
                "DATABASE_URL": "",
                "REDIS_URL": "",
            }
            if database == "sqlite":
                _run(environment, options.seconds)
                continue
            with servers.own_database() as url:
                _run({**environment, "DATABASE_URL": url}, options.seconds)


def _run(environment: dict[str, str], seconds: float) -> None:
    for command in (
        ["manage.py", "migrate", "-v0"],
        ["-m", "benchmarks.commands.data.ledger", "--here", "--seconds", str(seconds)],
    ):
        subprocess.run([sys.executable, *command], cwd=servers.ROOT, env=environment, check=True)  # noqa: S603 our own interpreter


def measure(seconds: float) -> None:
    """Measure on the database in the environment, which must be empty."""
    import django  # noqa: PLC0415 after the settings are known

    django.setup()
    from payments_app.ledger import accounts  # noqa: PLC0415 after django.setup

    for threads in THREADS:
        floor = _rate(_floor, threads, seconds)
        _print("update of one row (floor)", threads, floor, floor)
        for name, make in (
            ("reserve for an answer", _reserve),
            ("reserve and settle, 3 splits", _settle),
            ("transfer", _transfer),
        ):
            _print(name, threads, _rate(make, threads, seconds), floor)
        if threads > 1:
            shards = accounts.FEE_SHARDS
            accounts.FEE_SHARDS = 1  # type: ignore[misc] # what is compared
            _print(
                "reserve and settle, one fee account",
                threads,
                _rate(_settle, threads, seconds),
                floor,
            )
            accounts.FEE_SHARDS = shards  # type: ignore[misc] # as above


def _print(name: str, threads: int, rate: float, floor: float) -> None:
    print(f"{name:34}{threads:>8}{rate:>12.0f}{floor / rate:>9.1f}", flush=True)


def _rate(make: Callable[[int], Callable[[int], object]], threads: int, seconds: float) -> float:
    """Return operations per second; each thread has its own accounts, but the fees are shared."""
    from django.db import connections  # noqa: PLC0415 after django.setup

    done = [0] * threads
    barrier = threading.Barrier(threads + 1)
    durations = [0.0] * threads

    def work(place: int) -> None:
        operation = make(place)
        operation(-1)
        barrier.wait()
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            operation(done[place])
            done[place] += 1
        durations[place] = time.perf_counter() - start
        connections.close_all()

    running = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
    for thread in running:
        thread.start()
    barrier.wait()
    for thread in running:
        thread.join()
    return sum(count / time_taken for count, time_taken in zip(done, durations, strict=True))


def _accounts(place: int) -> tuple[str, list[int]]:
    """Return a unique prefix for keys, and three accounts, the first with plenty of money."""
    from payments_app import services  # noqa: PLC0415 after django.setup
    from payments_app.money import Money  # noqa: PLC0415 as above

    unique = f"{place}:{time.time_ns()}"
    ids = [
        services.ensure_account(code=f"user:{unique}:{number}", kind="user").id
        for number in range(3)
    ]
    services.top_up(
        key=unique, account=ids[0], amount=Money(10**15), provider="bench", external_id=unique
    )
    return unique, ids


def _floor(place: int) -> Callable[[int], object]:
    from django.db import transaction  # noqa: PLC0415 after django.setup

    from payments_app.ledger import sql  # noqa: PLC0415 as above

    _, ids = _accounts(place)

    def update(_: int) -> None:
        with transaction.atomic():
            sql.run("UPDATE payments_app_account SET agent_id = agent_id WHERE id = %s", [ids[0]])

    return update


def _reserve(place: int) -> Callable[[int], object]:
    """Return a function that reserves for answers, like the first write of a turn."""
    from payments_app import services  # noqa: PLC0415 after django.setup
    from payments_app.money import Money  # noqa: PLC0415 as above

    unique, ids = _accounts(place)

    def reserve(number: int) -> str:
        response_id = f"{unique}:r{number}"
        (outcome,) = services.authorize_many(
            [
                services.Authorization(
                    key=f"hold:{response_id}",
                    account_id=ids[0],
                    amount=Money(10),
                    purpose="answer",
                    response_id=response_id,
                )
            ]
        )
        if isinstance(outcome, Exception):
            raise outcome
        return response_id

    return reserve


def _settle(place: int) -> Callable[[int], object]:
    """Return a function that reserves and settles, like the second write of a turn."""
    from payments_app import services  # noqa: PLC0415 after django.setup
    from payments_app.money import Money  # noqa: PLC0415 as above

    reserve = _reserve(place)
    _, ids = _accounts(place)
    splits = [
        services.Split(ids[1], Money(6)),
        services.Split(ids[2], Money(3)),
        services.Split(None, Money(1)),
    ]

    def settle(number: int) -> None:
        response_id = str(reserve(number))
        (done,) = services.capture_many(
            [
                services.Capture(
                    key=f"settle:{response_id}",
                    response_id=response_id,
                    amount=Money(10),
                    splits=splits,
                    kind="answer",
                    release=True,
                )
            ]
        )
        if isinstance(done, Exception):
            raise done

    return settle


def _transfer(place: int) -> Callable[[int], object]:
    from payments_app import services  # noqa: PLC0415 after django.setup
    from payments_app.money import Money  # noqa: PLC0415 as above

    unique, ids = _accounts(place)
    return lambda number: services.transfer(
        key=f"{unique}:{number}", debit=ids[0], credit=ids[1], amount=Money(5)
    )


if __name__ == "__main__":
    main()
