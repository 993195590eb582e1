"""Settings: one module for both ways to run, chosen by the environment.

Every variable that is read here is described in docs/settings.md.
"""

import contextlib
import os
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF

from uamp_project.environment import (
    amount,
    choice,
    database,
    folder,
    integer,
    items,
    json_object,
    networks,
    number,
    redis,
    switch,
)

BASE_DIR = Path(__file__).resolve().parent.parent
# What the server writes is its user's alone, from the first byte on: the database and its journals,
# contents, keys, sockets. A folder that was there before is closed to others, too.
os.umask(0o077)
DATA_DIR = folder("DATA_DIR", BASE_DIR / "var")
if DATA_DIR.stat().st_mode & 0o077:
    # The folder of another user cannot be changed: the system check W011 says so.
    with contextlib.suppress(PermissionError):
        DATA_DIR.chmod(0o700)

DEBUG = switch("DEBUG", "0")
REDIS_URL = redis("REDIS_URL")
REDIS_PREFIX = os.environ.get("REDIS_PREFIX", "uamp")
DATABASE_URL = os.environ.get("DATABASE_URL", "")


def _secret_key() -> str:
    """Return SECRET_KEY, or the key kept in DATA_DIR, made on the first start."""
    if key := os.environ.get("SECRET_KEY"):
        return key
    path = DATA_DIR / "secret_key"
    if not path.exists():
        # Written aside and linked: two processes that start at once agree on one key.
        draft = path.with_suffix(f".{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()


SECRET_KEY = _secret_key()
ALLOWED_HOSTS = items("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = items("TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    "agents_app",
    "chat_app",
    "payments_app",
    "sessions_app",
    "uamp_project",
]

MIDDLEWARE = [
    "uamp_project.health.probe_middleware",
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "uamp_project.sign_in.device_middleware",
    "uamp_project.sign_in.RefusalMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "uamp_project.urls"
ASGI_APPLICATION = "uamp_project.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# --- Database -----------------------------------------------------------------------------------

DB_THREADS = integer("DB_THREADS", 8, least=1)


def _database() -> dict[str, Any]:
    """Return the one database, with the options that the guarantees need."""
    if not DATABASE_URL:
        synchronous = choice("SQLITE_SYNCHRONOUS", "FULL", ("OFF", "NORMAL", "FULL", "EXTRA"))
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": DATA_DIR / "db.sqlite3",
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                # DEFERRED loses writers to "database is locked": the busy timeout is
                # ignored when a reader becomes a writer.
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": (
                    f"PRAGMA journal_mode=WAL;PRAGMA synchronous={synchronous};"
                    "PRAGMA busy_timeout=20000;"
                ),
            },
        }
    config: dict[str, Any] = database("DATABASE_URL", conn_max_age=0)
    config["ENGINE"] = "uamp_project.postgresql"
    config["OPTIONS"] = {
        **config.get("OPTIONS", {}),
        "connect_timeout": 5,
        # A peer that vanished is noticed by the client: statement_timeout is server-side.
        "tcp_user_timeout": 8000,
        "keepalives_idle": 10,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "options": (
            "-c lock_timeout=5000 -c statement_timeout=10000"
            " -c idle_in_transaction_session_timeout=15000"
        ),
        "pool": {"min_size": 1, "max_size": DB_THREADS + 8, "timeout": 10},
    }
    return config


DATABASES = {"default": _database()}

# --- Channel layer, cache, Celery -----------------------------------------------------------------

if REDIS_URL:
    CHANNEL_LAYERS: dict[str, Any] = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [REDIS_URL], "prefix": REDIS_PREFIX},
        }
    }
    CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": REDIS_URL,
            "KEY_PREFIX": REDIS_PREFIX,
        }
    }
    CELERY_BROKER_URL = REDIS_URL
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
        "visibility_timeout": 7200,
        # A broker that is away must not hold a database thread: the reaper rings again.
        "max_retries": 0,
        "socket_connect_timeout": 2,
        "socket_timeout": 5,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        "global_keyprefix": REDIS_PREFIX + ".",
    }
else:
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "uamp_project.embedded.layer.EmbeddedChannelLayer",
            "CONFIG": {"socket_path": str(DATA_DIR / "run" / "layer.sock")},
        }
    }
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    CELERY_BROKER_URL = "filesystem://localhost"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(DATA_DIR / "run" / "broker"),
        "data_folder_out": str(DATA_DIR / "run" / "broker"),
        "control_folder": str(DATA_DIR / "run" / "control"),
        "polling_interval": 0.1,
    }

# The row is the queue, the Celery message only the doorbell.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A thread waits for each call; the tool itself has a process of its own.
CELERY_WORKER_POOL = "threads"
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True

# --- Files ----------------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "staticfiles"
# Whitenoise warns of a folder that is not there; nothing has to be collected to run.
STATIC_ROOT.mkdir(exist_ok=True)
STATICFILES_DIRS = [BASE_DIR / "static"]
SERVESTATIC_USE_FINDERS = True
MEDIA_ROOT = DATA_DIR / "content"
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
# Content is never served from MEDIA_URL: /api/content/<uuid> checks who asks.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# The body of a request; a batch of events may carry media as base64 (uamp.Limits.frame_bytes).
UAMP_BODY_BYTES = integer("UAMP_BODY_BYTES", 12 * 1024 * 1024)
DATA_UPLOAD_MAX_MEMORY_SIZE = UAMP_BODY_BYTES
# The bodies of all requests of one address that a process holds at once.
UAMP_BODY_BYTES_PER_ADDRESS = integer("UAMP_BODY_BYTES_PER_ADDRESS", 256 * 1024 * 1024)

# --- Who may --------------------------------------------------------------------------------------

# sessions_app.access.auth reads these rows to end the sockets of sessions that ended.
SESSION_ENGINE = "django.contrib.sessions.backends.db"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "sessions_app.access.passwords.KeysEndWithThePassword"},
]
PASSWORD_HASHERS = [
    "uamp_project.password_hashing.BoundedHasher",
    "django.contrib.auth.hashers.PBKDF2SHA1PasswordHasher",
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.BCryptSHA256PasswordHasher",
    "django.contrib.auth.hashers.ScryptPasswordHasher",
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    # Counts what is not paused, before a password is hashed.
    "uamp_project.sign_in.CountingBackend",
    "django.contrib.auth.backends.ModelBackend",
]
# Wrong passwords before signing in is paused: of one account from one address, of an account from
# everywhere, of one address for all accounts.
UAMP_SIGN_IN_FAILURES = integer("UAMP_SIGN_IN_FAILURES", 5, least=1)
UAMP_SIGN_IN_FAILURES_PER_ACCOUNT = integer("UAMP_SIGN_IN_FAILURES_PER_ACCOUNT", 20, least=1)
UAMP_SIGN_IN_FAILURES_PER_ADDRESS = integer("UAMP_SIGN_IN_FAILURES_PER_ADDRESS", 20, least=1)
UAMP_SIGN_IN_PAUSE_MINUTES = integer("UAMP_SIGN_IN_PAUSE_MINUTES", 15, most=1_000_000)
# Passwords that are checked in any minute: from one address, and of one account.
UAMP_SIGN_INS_PER_MINUTE = integer("UAMP_SIGN_INS_PER_MINUTE", 30)
AXES_HANDLER = "uamp_project.sign_in.SignInHandler"
AXES_LOCKOUT_CALLABLE = "uamp_project.sign_in.locked_response"
AXES_CLIENT_IP_CALLABLE = "uamp_project.sign_in.client_address"
AXES_FAILURE_LIMIT = UAMP_SIGN_IN_FAILURES
AXES_COOLOFF_TIME = timedelta(minutes=UAMP_SIGN_IN_PAUSE_MINUTES)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
# Who goes on trying does not make the pause longer, and nothing is kept of those who sign in.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
HTTPS = switch("HTTPS", "0")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_NAME = "__Host-sessionid" if HTTPS else "sessionid"
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "blob:", "data:"],
        "media-src": [SELF, "blob:"],
        "connect-src": [SELF],
        "font-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
    }
}

# --- REST -----------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "sessions_app.access.auth.ApiKeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_THROTTLE_CLASSES": ["sessions_app.access.throttles.RateThrottle"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "chat_app.rest.problems.problem_handler",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "UAMP server REST API",
    "DESCRIPTION": (
        "History of chats, the content that messages carry, and payments: balances, tokens, locks,"
        " limits and top-ups. Send `Authorization: Bearer <API key>`; keys are made on /account."
    ),
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "PeriodEnum": ["day", "week", "month"],
        "BudgetPeriodEnum": ["day", "week", "month", "total"],
    },
}

# --- The server -----------------------------------------------------------------------------------

# The agent of a session that names none (UAMP §3.1 does not name one).
UAMP_DEFAULT_AGENT = os.environ.get("UAMP_DEFAULT_AGENT", "assistant")
# Who this server is in the tokens that it signs (`iss`): its address as others know it.
UAMP_ISSUER = os.environ.get("UAMP_ISSUER", "http://localhost:8000")
# PEM files of the keys that sign payment tokens, the first signs; none: DATA_DIR/signing_keys.
UAMP_SIGNING_KEYS = items("UAMP_SIGNING_KEYS")
# x402, scheme exact: who verifies and settles payments on a chain, and where the money goes.
UAMP_X402_FACILITATOR = os.environ.get("UAMP_X402_FACILITATOR", "")
UAMP_X402_PAY_TO = os.environ.get("UAMP_X402_PAY_TO", "")
UAMP_X402_NETWORK = os.environ.get("UAMP_X402_NETWORK", "eip155:8453")
UAMP_X402_ASSET = os.environ.get("UAMP_X402_ASSET", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")
UAMP_X402_ASSET_NAME = os.environ.get("UAMP_X402_ASSET_NAME", "USD Coin")
UAMP_X402_ASSET_VERSION = os.environ.get("UAMP_X402_ASSET_VERSION", "2")
UAMP_X402_SECONDS = number("UAMP_X402_SECONDS", 30)
# How people put money in: providers as dotted paths, and the most of one top-up.
UAMP_TOPUP_PROVIDERS = items("UAMP_TOPUP_PROVIDERS", "payments_app.top_ups.manual.ManualProvider")
UAMP_TOPUP_MAX = amount("UAMP_TOPUP_MAX", "1000")
UAMP_STRIPE_KEY = os.environ.get("UAMP_STRIPE_KEY", "")
UAMP_STRIPE_WEBHOOK_SECRET = os.environ.get("UAMP_STRIPE_WEBHOOK_SECRET", "")
UAMP_STRIPE_API = os.environ.get("UAMP_STRIPE_API", "")
# Agents that are marked public may be used without signing in.
UAMP_ALLOW_ANONYMOUS = switch("UAMP_ALLOW_ANONYMOUS", "1")
# Those of them for which a model answers without a price, too: the operator's key pays for it.
UAMP_ANONYMOUS_MODELS = switch("UAMP_ANONYMOUS_MODELS", "0")
# Tools that agents of this server may be given, as dotted paths to ServerTool objects.
UAMP_SERVER_TOOLS = [
    "agents_app.tools.csv_report.csv_report",
    "agents_app.tools.fetch_page.fetch_page",
    "agents_app.tools.chat_search.search_chat",
    "agents_app.tools.edit_picture.edit_picture",
]
# Where tools may send requests besides the public internet: "host:port", also http and private.
UAMP_FETCH_ALLOW_HOSTS = items("UAMP_FETCH_ALLOW_HOSTS")
# One request of a tool, with its redirects: how long it may take, and how much may come.
UAMP_FETCH_SECONDS = number("UAMP_FETCH_SECONDS", 10)
UAMP_FETCH_BYTES = integer("UAMP_FETCH_BYTES", 5 * 1024 * 1024)
# Programs that tool sources may start (MCP over stdio), exactly as their rows name them.
UAMP_MCP_COMMANDS = items("UAMP_MCP_COMMANDS")
# Where tool sources may be besides the public internet: "host:port", also http and private.
UAMP_MCP_PRIVATE_HOSTS = items("UAMP_MCP_PRIVATE_HOSTS")
# Where models may be besides the public internet, and which get any key: "host:port".
UAMP_MODEL_ALLOW_HOSTS = items("UAMP_MODEL_ALLOW_HOSTS")
# What one answer of a tool source may have.
UAMP_MCP_RESULT_BYTES = integer("UAMP_MCP_RESULT_BYTES", 16 * 1024 * 1024)
# On a socket with several sessions an input.text that no response.create follows within
# this time starts its response (UAMP §10.4 prints no response.create); 0 turns it off.
UAMP_AUTO_RESPOND_MS = integer("UAMP_AUTO_RESPOND_MS", 1000)
# Deltas for members other than the asker are collected this long.
UAMP_COALESCE_MS = integer("UAMP_COALESCE_MS", 25)
# The text so far of a running response is stored this often.
UAMP_FLUSH_MS = integer("UAMP_FLUSH_MS", 250, least=1)
# A response or tool call whose process is silent this long belongs to the sweeper.
UAMP_LEASE_SECONDS = number("UAMP_LEASE_SECONDS", 15, least=0.1)
UAMP_SWEEP_SECONDS = number("UAMP_SWEEP_SECONDS", 3, least=0.01)
# How long a run waits for a tool.result of its client.
UAMP_TOOL_WAIT_SECONDS = number("UAMP_TOOL_WAIT_SECONDS", 1800)
# How long a call waits for a person to allow it.
UAMP_APPROVAL_SECONDS = number("UAMP_APPROVAL_SECONDS", 86400)
# How long an answer waits to be paid, and how long what was reserved for one is held at most.
UAMP_PAYMENT_SECONDS = number("UAMP_PAYMENT_SECONDS", 900)
UAMP_HOLD_SECONDS = number("UAMP_HOLD_SECONDS", 172800)
# Output tokens that are reserved for a step when nobody said max_tokens.
UAMP_RESERVE_TOKENS = integer("UAMP_RESERVE_TOKENS", 512)
# What is due for an answer that failed or was stopped: usage, none or full.
# Output tokens that are reserved besides where a model reasons and nothing says how much.
UAMP_RESERVE_REASONING_TOKENS = integer("UAMP_RESERVE_REASONING_TOKENS", 4096)
UAMP_CHARGE_UNFINISHED = choice("UAMP_CHARGE_UNFINISHED", "usage", ("usage", "none", "full"))
# The server's share of what agents earn, in hundredths of a percent.
UAMP_FEE_BASIS_POINTS = integer("UAMP_FEE_BASIS_POINTS", 0, most=10_000)
# The `ap2` member of payment.required, as a JSON object (UAMP §7.2).
UAMP_AP2 = json_object("UAMP_AP2")
# How often work is passed on from agent to agent.
UAMP_DELEGATE_DEPTH = integer("UAMP_DELEGATE_DEPTH", 3)
# Whether who waits for another agent reads its thoughts too (UAMP §6.13).
DELEGATE_FORWARD_THINKING = switch("DELEGATE_FORWARD_THINKING", "1")
# A long tool that takes longer is ended, counted from its first start.
UAMP_TOOL_SECONDS = number("UAMP_TOOL_SECONDS", 600)
# A trial of an agent in the admin: how long it may take, and how many a person may ask for.
UAMP_TRIAL_SECONDS = number("UAMP_TRIAL_SECONDS", 120)
UAMP_TRIALS_PER_MINUTE = integer("UAMP_TRIALS_PER_MINUTE", 10)
# What the process of a long tool may allocate, in MiB; 0 sets no limit.
UAMP_TOOL_MEMORY_MB = integer("UAMP_TOOL_MEMORY_MB", 1024)
# A response that takes longer is ended as failed.
UAMP_RESPONSE_SECONDS = number("UAMP_RESPONSE_SECONDS", 1800)
# SIGTERM: responses get this long to finish before the sockets are closed with 1012.
UAMP_GRACE_SECONDS = number("UAMP_GRACE_SECONDS", 20)
# A session that no connection holds for this long is closed and cannot be resumed.
UAMP_SESSION_IDLE_HOURS = number("UAMP_SESSION_IDLE_HOURS", 24, most=1_000_000)
# A client event that is repeated within this time has no second effect; then it is forgotten.
UAMP_REPEAT_DAYS = number("UAMP_REPEAT_DAYS", 7, most=36_500)
# A visitor's private chat whose sessions are closed is deleted after this time; 0 keeps it.
UAMP_VISITOR_DAYS = number("UAMP_VISITOR_DAYS", 30, most=36_500)
# Messages of the chat that an agent is shown.
UAMP_HISTORY_MESSAGES = integer("UAMP_HISTORY_MESSAGES", 50)
# Open sockets and event streams in one process, for a person and for an address of visitors.
UAMP_CONNECTIONS_PER_USER = integer("UAMP_CONNECTIONS_PER_USER", 20)
UAMP_CONNECTIONS_PER_ADDRESS = integer("UAMP_CONNECTIONS_PER_ADDRESS", 50)
# Text of one message: the inputs of a turn together, without media, in bytes.
UAMP_MESSAGE_BYTES = integer("UAMP_MESSAGE_BYTES", 256 * 1024)
# Inputs that wait for response.create, in bytes: on a connection, and of a person.
UAMP_PENDING_BYTES_PER_CONNECTION = integer("UAMP_PENDING_BYTES_PER_CONNECTION", 32 * 1024 * 1024)
UAMP_PENDING_BYTES_PER_USER = integer("UAMP_PENDING_BYTES_PER_USER", 64 * 1024 * 1024)
# Events that are not yet sent to one client, in bytes; more are read again from the log later.
UAMP_OWED_BYTES = integer("UAMP_OWED_BYTES", 4 * 1024 * 1024)
# A client that takes nothing of what is sent to it, or stops in a request body, is disconnected.
UAMP_STALL_SECONDS = number("UAMP_STALL_SECONDS", 25, least=0.1)
# Client events per socket: beyond the burst a socket is read at this pace.
UAMP_EVENTS_PER_MINUTE = integer("UAMP_EVENTS_PER_MINUTE", 1200, least=1)
UAMP_EVENTS_BURST = integer("UAMP_EVENTS_BURST", 120, least=1)
# Requests in any minute, over all transports: of a person, or of the visitors of an address.
UAMP_REQUESTS_PER_MINUTE = integer("UAMP_REQUESTS_PER_MINUTE", 12000)
UAMP_READS_PER_MINUTE = integer("UAMP_READS_PER_MINUTE", 3000)
UAMP_WRITES_PER_MINUTE = integer("UAMP_WRITES_PER_MINUTE", 600)
UAMP_UPLOADS_PER_MINUTE = integer("UAMP_UPLOADS_PER_MINUTE", 120)
UAMP_RENDERS_PER_MINUTE = integer("UAMP_RENDERS_PER_MINUTE", 600)
UAMP_DISCOVERY_PER_MINUTE = integer("UAMP_DISCOVERY_PER_MINUTE", 600)
UAMP_HTTP_EVENTS_PER_MINUTE = integer("UAMP_HTTP_EVENTS_PER_MINUTE", 1200)
UAMP_ANONYMOUS_HTTP_EVENTS_PER_MINUTE = integer("UAMP_ANONYMOUS_HTTP_EVENTS_PER_MINUTE", 300)
UAMP_SESSIONS_PER_MINUTE = integer("UAMP_SESSIONS_PER_MINUTE", 240)
UAMP_ANONYMOUS_SESSIONS_PER_MINUTE = integer("UAMP_ANONYMOUS_SESSIONS_PER_MINUTE", 60)
UAMP_RESPONSES_PER_MINUTE = integer("UAMP_RESPONSES_PER_MINUTE", 60)
UAMP_RESPONSES_PER_SESSION = integer("UAMP_RESPONSES_PER_SESSION", 8)
# Answers that one message starts, and that one person, or the visitors of one address, have at once
# in a process, also those that wait; one more is refused with 'queue_full'.
UAMP_RESPONSES_PER_TURN = integer("UAMP_RESPONSES_PER_TURN", 20)
UAMP_RESPONSES_PER_PERSON = integer("UAMP_RESPONSES_PER_PERSON", 100)
UAMP_PAYMENTS_PER_MINUTE = integer("UAMP_PAYMENTS_PER_MINUTE", 60)
UAMP_ANONYMOUS_PAYMENTS_PER_MINUTE = integer("UAMP_ANONYMOUS_PAYMENTS_PER_MINUTE", 20)
# What a person, or the visitors of one address, may have stored as text.
UAMP_TEXT_BYTES_PER_DAY = integer("UAMP_TEXT_BYTES_PER_DAY", 512 * 1024 * 1024)
UAMP_ANONYMOUS_TEXT_BYTES_PER_DAY = integer("UAMP_ANONYMOUS_TEXT_BYTES_PER_DAY", 128 * 1024 * 1024)
UAMP_ANONYMOUS_RESPONSES_PER_MINUTE = integer("UAMP_ANONYMOUS_RESPONSES_PER_MINUTE", 20)
# Proxies whose X-Forwarded-For is believed: addresses or networks, or 'unix' for a local socket.
UAMP_TRUSTED_PROXIES = networks("UAMP_TRUSTED_PROXIES")
# What is stored for one person, for one chat by agents, and for all visitors together.
UAMP_STORED_BYTES_PER_USER = integer("UAMP_STORED_BYTES_PER_USER", 1024**3)
UAMP_STORED_FILES_PER_USER = integer("UAMP_STORED_FILES_PER_USER", 10000)
UAMP_ANONYMOUS_STORED_BYTES = integer("UAMP_ANONYMOUS_STORED_BYTES", 1024**3)
UAMP_ANONYMOUS_STORED_FILES = integer("UAMP_ANONYMOUS_STORED_FILES", 20000)
UAMP_UPLOAD_BYTES = integer("UAMP_UPLOAD_BYTES", 25 * 1024 * 1024)
# 'direct' writes each turn by itself, 'group' commits overlapping turns together.
UAMP_TURN_STORE = choice("UAMP_TURN_STORE", "group", ("group", "direct"))
# 'sql' writes turns with statements of their own, 'orm' with the readable functions that specify
# them.
UAMP_TURN_BODIES = choice("UAMP_TURN_BODIES", "sql", ("sql", "orm"))
# How many runs work in one process at once; one more is answered with 'busy'. Those that wait for
# a person, a client or another agent do not count.
UAMP_RUNS_PER_PROCESS = integer("UAMP_RUNS_PER_PROCESS", 2000)

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = True

LOG_LEVEL = choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
# The formatter takes credentials out of every line. The loggers of the servers and of Django's own
# request log have handlers of their own elsewhere: here they hand on to the root's.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "uamp_project.redaction.RedactingFormatter",
            "format": "{asctime} {levelname} {name} {message}",
            "style": "{",
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        **{
            name: {"handlers": [], "propagate": True}
            for name in (
                "celery", "celery.task", "celery.redirected", "django", "django.server",
                "uvicorn", "uvicorn.access", "uvicorn.asgi", "uvicorn.error",
            )
        },
        "django.channels.server": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        # The MCP client logs what servers say; what went wrong is logged by agents_app, in words.
        "client": {"level": "CRITICAL"},
        "mcp": {"level": "CRITICAL"},
    },
}  # fmt: skip
