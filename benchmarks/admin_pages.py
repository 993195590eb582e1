"""`admin_pages.py`: fill the tables of a benchmark's database and time the admin's lists.

GROWTH_ROWS is the number of rows per table. A superuser requests each list through the whole stack
of views, in this process. Prints one line of JSON per list: the request, the number of statements,
and ROUNDS times in milliseconds after an uncounted warm-up. Runs on the code in PYTHONPATH.
"""

from __future__ import annotations

import json
import time
from typing import Final

import django

django.setup()

# Django has to be set up first.
from django.db import connection, transaction  # noqa: E402
from django.db.models import Value  # noqa: E402
from django.db.models.functions import Concat  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from agents_app.models import Agent  # noqa: E402
from tests.growth.admin_lists import address_of, grown_lists  # noqa: E402
from tests.growth.rows import fill_tables  # noqa: E402

ROUNDS: Final = 3


def main() -> None:
    """Fill the tables, then measure each list."""
    began = time.perf_counter()
    with transaction.atomic():
        # Avoid name collisions between seeded agents and those created here.
        Agent.objects.update(name=Concat(Value("seeded-"), "name"))
        filled = fill_tables()
    print(json.dumps({"filled": time.perf_counter() - began}), flush=True)
    client = Client(headers={"host": "localhost"})
    client.force_login(filled.root)
    for label, query in grown_lists():
        address, times, statements = address_of(label, query), [], 0
        for _ in range(1 + ROUNDS):
            with CaptureQueriesContext(connection) as queries:
                at = time.perf_counter()
                answer = client.get(address)
                times.append((time.perf_counter() - at) * 1000)
            if answer.status_code != 200:
                raise RuntimeError(f"{address}: {answer.status_code}")
            statements = len(queries)
        line = {"list": label, "query": query, "statements": statements}
        print(json.dumps({**line, "times": times[1:]}), flush=True)


main()
