"""Sign-in, passwords, cookies, HTTPS and the Content Security Policy."""

from datetime import timedelta

from csp.constants import NONE, SELF

from uamp_project.settings.environment import integer, origins, switch

# sessions_app.access.auth reads these rows, to close the sockets of web sessions that ended.
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
    "uamp_project.sign_in.password_hashing.BoundedHasher",
    "django.contrib.auth.hashers.PBKDF2SHA1PasswordHasher",
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.BCryptSHA256PasswordHasher",
    "django.contrib.auth.hashers.ScryptPasswordHasher",
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    # Counts the passwords of accounts that are not paused, before any is hashed.
    "uamp_project.sign_in.quotas.CountingBackend",
    "django.contrib.auth.backends.ModelBackend",
]
# Wrong passwords before sign-in is paused: of one account from one address, of one account from
# anywhere, and of all accounts from one address.
UAMP_SIGN_IN_FAILURES = integer("UAMP_SIGN_IN_FAILURES", 5, minimum=1)
UAMP_SIGN_IN_FAILURES_PER_ACCOUNT = integer("UAMP_SIGN_IN_FAILURES_PER_ACCOUNT", 20, minimum=1)
UAMP_SIGN_IN_FAILURES_PER_ADDRESS = integer("UAMP_SIGN_IN_FAILURES_PER_ADDRESS", 20, minimum=1)
UAMP_SIGN_IN_PAUSE_MINUTES = integer("UAMP_SIGN_IN_PAUSE_MINUTES", 15, maximum=1_000_000)
# Passwords checked per minute, from one address and for one account.
UAMP_SIGN_INS_PER_MINUTE = integer("UAMP_SIGN_INS_PER_MINUTE", 30)
AXES_HANDLER = "uamp_project.sign_in.failures.SignInHandler"
AXES_LOCKOUT_CALLABLE = "uamp_project.sign_in.failures.locked_response"
AXES_CLIENT_IP_CALLABLE = "uamp_project.sign_in.failures.client_address"
AXES_FAILURE_LIMIT = UAMP_SIGN_IN_FAILURES
AXES_COOLOFF_TIME = timedelta(minutes=UAMP_SIGN_IN_PAUSE_MINUTES)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
# Attempts during a pause do not prolong it; successful sign-ins are not logged.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False

# Origins whose pages may call with a key; `*` for all. Those in TRUSTED_ORIGINS may also send
# cookies.
UAMP_CORS_ORIGINS = origins("UAMP_CORS_ORIGINS")

HTTPS = switch("HTTPS", "0")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = HTTPS
SESSION_COOKIE_NAME = "__Host-sessionid" if HTTPS else "sessionid"
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
# Instead, uamp_project.deployment_checks reports that HTTPS is off.
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008", "security.W012", "security.W016"]
# HSTS is for this host alone: subdomains, and their entry in browsers, may not be the operator's.
SILENCED_SYSTEM_CHECKS += ["security.W005", "security.W021"]
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
