"""Debits an account by one unit in several processes: `ledger_debits FROM TO COUNT PROCESSES`.

Prints how many each process has done. Together they may not take more than there is.
"""

import multiprocessing
import sys
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

JOIN_SECONDS = 240


def main(debit: int, credit: int, count: int, processes: int) -> None:
    """Start the processes at the same moment; print what each has done, in a line."""
    from payments_app import services  # noqa: F401, PLC0415 read once, before the fork

    fork = multiprocessing.get_context("fork")
    done: Queue[int] = fork.Queue()
    ready = fork.Barrier(processes)

    def run(number: int) -> None:
        ready.wait(60)
        done.put(debit_again_and_again(debit, credit, count, f"p{number}"))

    children = [fork.Process(target=run, args=(number,)) for number in range(processes)]
    for child in children:
        child.start()
    for child in children:
        child.join(JOIN_SECONDS)
    if any(child.exitcode != 0 for child in children):
        for child in children:
            child.kill()
        sys.exit("a process failed")
    sys.stdout.write(" ".join(str(done.get(timeout=60)) for _ in children) + "\n")


def debit_again_and_again(debit: int, credit: int, count: int, prefix: str) -> int:
    """Try so many debits; return how many were done."""
    from payments_app import services  # noqa: PLC0415 after django.setup
    from payments_app.money import Money  # noqa: PLC0415 as above

    done = 0
    for number in range(count):
        try:
            services.transfer(key=f"{prefix}:{number}", debit=debit, credit=credit, amount=Money(1))
        except services.InsufficientFunds:
            continue
        done += 1
    return done


if __name__ == "__main__":
    django.setup()
    main(*map(int, sys.argv[1:]))
