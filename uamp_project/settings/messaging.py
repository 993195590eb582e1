"""Channel layer, cache and Celery: within the process, or over the Redis of REDIS_URL."""

from typing import Any

from kombu import Queue

from uamp_project.settings.environment import redis, redis_servers, string
from uamp_project.settings.files import DATA_DIR

REDIS_URL = redis("REDIS_URL")
REDIS_PREFIX = string("REDIS_PREFIX", "uamp")
# Each chat's events go through one of these.
REDIS_LAYER_URLS = redis_servers("REDIS_LAYER_URLS") or [REDIS_URL]

if REDIS_URL:
    CHANNEL_LAYERS: dict[str, Any] = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": REDIS_LAYER_URLS, "prefix": REDIS_PREFIX},
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
    CELERY_BROKER_TRANSPORT: str | None = None
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
        "visibility_timeout": 7200,
        # An unreachable broker must not hold a database thread, since the sweep sends the task
        # again.
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
    CELERY_BROKER_TRANSPORT = "uamp_project.embedded.broker:FileTransport"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(DATA_DIR / "run" / "broker"),
        "data_folder_out": str(DATA_DIR / "run" / "broker"),
        "control_folder": str(DATA_DIR / "run" / "control"),
        "polling_interval": 0.1,
    }

# The row of a tool call is the queue; the Celery message only notifies a worker. A worker without
# `-Q` serves all queues. With separate workers, a long tool does not delay a webhook, and fetching
# pages or transcribing sounds delays neither.
CELERY_TASK_QUEUES = (Queue("tools"), Queue("webhooks"), Queue("readings"))
CELERY_TASK_DEFAULT_QUEUE = "tools"
CELERY_TASK_ROUTES = {
    "sessions_app.webhooks.tasks.*": {"queue": "webhooks"},
    "chat_app.digests.tasks.*": {"queue": "webhooks"},
    "chat_app.push.tasks.*": {"queue": "webhooks"},
    "chat_app.link_cards.tasks.*": {"queue": "readings"},
    "chat_app.transcripts.tasks.*": {"queue": "readings"},
}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# One thread waits for each call; the tool itself runs in a separate process.
CELERY_WORKER_POOL = "threads"
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
