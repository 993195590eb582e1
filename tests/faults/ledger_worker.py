"""One worker of the chaos run: random operations with stable keys, and a journal of them.

A line is in the journal before its operation is tried (`try`), and after its answer is
known (`done` or `refused`). A worker that starts again first repeats, with the same keys, what has
no answer. Whatever goes wrong with the connection is tried again with the same key.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

DEATH = 0.004
"""How often a worker kills itself between its commit and its journal: the worst moment."""


class Worker:
    """Does operations one after the other and writes down what became of them."""

    def __init__(self, journal: Path, seed: str) -> None:
        self.journal = journal
        self.seed = seed
        self.random = random.Random(f"{seed}:{time.time_ns()}")  # noqa: S311 not for secrets
        self.number = 0
        self.waiting: dict[str, dict[str, Any]] = {}
        self.holds: list[str] = []
        self.transfers: list[str] = []
        self.answered: list[tuple[dict[str, Any], Any]] = []
        for line in journal.read_text().splitlines() if journal.exists() else []:
            self.read(json.loads(line))
        self.file = os.open(journal, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    def read(self, line: dict[str, Any]) -> None:
        """Take in a line of the journal."""
        order = line["order"]
        if line["line"] == "try":
            self.number += 1
            self.waiting[order["key"]] = order
            return
        self.waiting.pop(order["key"], None)
        if line["line"] == "done":
            self.answered.append((order, line["ids"]))
            {"hold": self.holds, "void": []}.get(order["op"], self.transfers).extend(line["ids"])

    def write(self, kind: str, order: dict[str, Any], ids: list[str]) -> None:
        """Write a line in one piece: a killed worker leaves whole lines."""
        line = {"line": kind, "order": order, "ids": ids}
        os.write(self.file, (json.dumps(line) + "\n").encode())
        self.read(line)

    def next_order(self, people: list[int]) -> dict[str, Any]:
        """Think of something to do; `people` are the ids of the accounts."""
        op = self.random.choice(
            ["hold", "hold", "capture", "capture", "void", "transfer", "top_up", "refund"]
        )
        if op in {"capture", "void"} and not self.holds:
            op = "hold"
        if op == "refund" and not self.transfers:
            op = "top_up"
        debit, credit = self.random.sample(people, 2)
        return {
            "op": op,
            "key": f"{self.seed}:{self.number}",
            "debit": debit,
            "credit": credit,
            "amount": self.random.randint(2, 40),
            "hold": self.random.choice(self.holds[-20:]) if self.holds else "",
            "transfer": self.random.choice(self.transfers[-20:]) if self.transfers else "",
            "release": self.random.random() < 0.5,
            "seconds": self.random.choice([0.05, 60.0]),
        }

    def carry_out(self, order: dict[str, Any]) -> None:
        """Do an order until there is an answer, and write that down."""
        from django.db import Error, IntegrityError, connection  # noqa: PLC0415 after django.setup

        from payments_app import services  # noqa: PLC0415 as above

        while True:
            try:
                ids = perform(order)
            except services.LedgerError:
                return self.write("refused", order, [])
            except IntegrityError:
                raise
            except Error:
                connection.close()
                time.sleep(0.02)
                continue
            if self.random.random() < DEATH:
                os.kill(os.getpid(), signal.SIGKILL)
            return self.write("done", order, ids)

    def run(self, stop: Path, people: list[int]) -> None:
        """Answer the open orders, then work until the end."""
        from django.db import Error, connection  # noqa: PLC0415 after django.setup

        from payments_app.ledger.expiry import expire_holds  # noqa: PLC0415 as above

        for order in list(self.waiting.values()):
            self.carry_out(order)
        while not stop.exists():
            order = self.next_order(people)
            self.write("try", order, [])
            self.carry_out(order)
            if self.answered and self.random.random() < 0.1:
                # An answer that was given is asked for again, as a client does that lost it.
                self.carry_out(self.random.choice(self.answered[-50:])[0])
            if self.random.random() < 0.05:
                try:
                    expire_holds()
                except Error:
                    connection.close()


def perform(order: dict[str, Any]) -> list[str]:
    """Do what an order says; return the ids of what it made. Its key is written into the rows."""
    from payments_app import services  # noqa: PLC0415 after django.setup
    from payments_app.money import Money  # noqa: PLC0415 as above

    key, amount = order["key"], Money(order["amount"])
    if order["op"] == "hold":
        authorization = services.authorize(
            services.Authorization(
                key=key,
                account_id=order["debit"],
                amount=amount,
                purpose=key,
                expires_in=order["seconds"],
            )
        )
        return [authorization.hold_id]
    if order["op"] == "void":
        services.void(key=key, hold_id=order["hold"])
        return []
    if order["op"] == "capture":
        fee = Money(1)
        splits = [services.Split(order["credit"], amount - fee), services.Split(None, fee)]
        capture = services.capture(
            key=key,
            hold_id=order["hold"],
            amount=amount,
            splits=splits,
            memo=key,
            release=order["release"],
        )
        return list(capture.transfer_ids)
    if order["op"] == "transfer":
        moved = services.transfer(
            key=key, debit=order["debit"], credit=order["credit"], amount=amount, memo=key
        )
    elif order["op"] == "top_up":
        moved = services.top_up(
            key=key,
            account=order["credit"],
            amount=amount,
            provider="chaos",
            external_id=key,
            memo=key,
        )
    else:
        moved = services.refund(
            key=key, transfer_id=order["transfer"], amount=amount, by=None, reason=key
        )
    return [moved.transfer_id]


def work(journal: Path, seed: str, stop: Path, people: list[int], port: int | None) -> None:
    """Work, in a process that was forked for it; `port` is where the database is reached."""
    from django.db import connection  # noqa: PLC0415 after django.setup

    if port is not None:
        connection.settings_dict.update(HOST="127.0.0.1", PORT=port)
    Worker(journal, seed).run(stop, people)
