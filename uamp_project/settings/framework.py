"""Django itself: the secret key, applications, middleware, templates, language and time zone."""

import os
import secrets
import sys

from uamp_project.settings.environment import items, string, switch
from uamp_project.settings.files import BASE_DIR, DATA_DIR

DEBUG = switch("DEBUG", "0")


def _secret_key() -> str:
    """Return SECRET_KEY, or the key in DATA_DIR, which the first start creates."""
    if key := string("SECRET_KEY"):
        return key
    path = DATA_DIR / "secret_key"
    if not path.exists():
        # Written to a draft and then linked, so that two processes starting at once agree on one
        # key.
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
SECRET_KEY_FALLBACKS = items("SECRET_KEY_FALLBACKS")
ALLOWED_HOSTS = items("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = items("TRUSTED_ORIGINS")

INSTALLED_APPS = [
    # Only needed for this command; every other process would import Twisted for nothing.
    *(["daphne"] if sys.argv[1:2] == ["runserver"] else []),
    "uamp_project.operators_site.OperatorsAdminConfig",
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
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "audit_app",
    "signing_app",
    "agents_app",
    "chat_app",
    "payments_app",
    "sessions_app",
    "gateway_app",
    "federation_app",
    "uamp_project",
]

MIDDLEWARE = [
    "uamp_project.health.probe_middleware",
    "django.middleware.security.SecurityMiddleware",
    "uamp_project.edge.static_files.StaticFilesMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "uamp_project.languages.language_middleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "uamp_project.sign_in.devices.device_middleware",
    "uamp_project.sign_in.quotas.RefusalMiddleware",
    "axes.middleware.AxesMiddleware",
    "allauth.account.middleware.AccountMiddleware",
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
            "libraries": {"bundle": "chat_app.browser.bundle", "faces": "chat_app.browser.faces"},
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "uamp_project.languages.words_script",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "chat_app.browser.appearance.appearance",
                "chat_app.browser.site.site",
            ],
        },
    }
]

USE_TZ = True
TIME_ZONE = "UTC"
# English is for programs, logs and browsers of any unsupported language.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
LANGUAGE_COOKIE_NAME = "language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
