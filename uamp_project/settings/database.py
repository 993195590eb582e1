"""The database: SQLite in DATA_DIR, or the PostgreSQL database of DATABASE_URL."""

from typing import Any

from uamp_project.settings.environment import choice, database, integer, string
from uamp_project.settings.files import DATA_DIR

DATABASE_URL = string("DATABASE_URL")
DB_THREADS = integer("DB_THREADS", 8, minimum=1)
_TIMEOUTS = (
    "-c lock_timeout=5000 -c statement_timeout=10000 -c idle_in_transaction_session_timeout=15000"
)


def _database() -> dict[str, Any]:
    """Return the only database, with the options that the guarantees need."""
    if not DATABASE_URL:
        synchronous = choice("SQLITE_SYNCHRONOUS", "FULL", ("OFF", "NORMAL", "FULL", "EXTRA"))
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": DATA_DIR / "db.sqlite3",
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                # With DEFERRED, writers fail with "database is locked", because SQLite ignores the
                # busy timeout when a reader becomes a writer.
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                # At most 32 MiB of pages per connection. With SQLite's default of 2 MB, a turn took
                # twice the CPU after 25,000 turns, since each new row reads index pages.
                "init_command": (
                    f"PRAGMA journal_mode=WAL;PRAGMA synchronous={synchronous};"
                    "PRAGMA busy_timeout=20000;PRAGMA cache_size=-32768;"
                ),
            },
        }
    config: dict[str, Any] = database("DATABASE_URL", conn_max_age=0)
    config["ENGINE"] = "uamp_project.postgresql"
    options = config.get("OPTIONS", {})
    config["OPTIONS"] = {
        "connect_timeout": 5,
        **options,
        # The client must detect a vanished server, since statement_timeout is enforced server-side.
        "tcp_user_timeout": 8000,
        "keepalives_idle": 10,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        # Of two values of a parameter, PostgreSQL takes the last.
        "options": f"{options.get('options', '')} {_TIMEOUTS}".lstrip(),
        "pool": {"min_size": 1, "max_size": DB_THREADS + 8, "timeout": 10},
    }
    return config


DATABASES = {"default": _database()}
