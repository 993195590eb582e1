"""Tokens of other issuers, sign-in with an OpenID Connect provider, second factors, and emails."""

from uamp_project.settings.environment import (
    choice,
    integer,
    items,
    json_object,
    jwt_issuers,
    number,
    string,
    switch,
    witnesses,
)
from uamp_project.settings.files import DATA_DIR

# PEM files of the token-signing keys, of which the first signs; empty uses DATA_DIR/signing_keys.
UAMP_SIGNING_KEYS = items("UAMP_SIGNING_KEYS")
# The algorithm with which agents sign their answers; changing it rotates their keys.
UAMP_SIGNATURE_ALGORITHM = choice("UAMP_SIGNATURE_ALGORITHM", "RS256", ("RS256", "EdDSA", "ES256"))

# How often the head of a growing log is signed; it is also signed on request.
UAMP_CHECKPOINT_MINUTES = integer("UAMP_CHECKPOINT_MINUTES", 60, minimum=1)

# The verifier keys of witnesses, whose cosignatures of the tree of log heads are published, each
# with the address at which it takes checkpoints, if the server is to submit them.
UAMP_WITNESSES = witnesses("UAMP_WITNESSES")

UAMP_JWT_ISSUERS = jwt_issuers("UAMP_JWT_ISSUERS")
# The tolerated difference between an issuer's clock and this server's.
UAMP_JWT_LEEWAY_SECONDS = integer("UAMP_JWT_LEEWAY_SECONDS", 30, maximum=120)

# Whether visitors with an invite link may create an account; with a provider, they sign in there.
UAMP_INVITED_ACCOUNTS = switch("UAMP_INVITED_ACCOUNTS", "1")

UAMP_OIDC_ISSUER = string("UAMP_OIDC_ISSUER")
UAMP_OIDC_CLIENT_ID = string("UAMP_OIDC_CLIENT_ID")
UAMP_OIDC_CLIENT_SECRET = string("UAMP_OIDC_CLIENT_SECRET")
# The label of the button on the login page.
UAMP_OIDC_LABEL = string("UAMP_OIDC_LABEL")
UAMP_OIDC_SCOPES = items("UAMP_OIDC_SCOPES", "openid,profile,email")
UAMP_OIDC_CREATES_PEOPLE = switch("UAMP_OIDC_CREATES_PEOPLE", "1")
# Maps groups of the provider to Django groups, and names the claim with a person's groups.
UAMP_OIDC_GROUPS = json_object("UAMP_OIDC_GROUPS")
UAMP_OIDC_GROUPS_CLAIM = string("UAMP_OIDC_GROUPS_CLAIM", "groups")

# Whether staff need a second factor for the admin.
UAMP_STAFF_SECOND_FACTOR = switch("UAMP_STAFF_SECOND_FACTOR", "0")
UAMP_PASSKEYS_PER_USER = integer("UAMP_PASSKEYS_PER_USER", 20, minimum=1)

# How long a link in an email is valid.
PASSWORD_RESET_TIMEOUT = 3600
ACCOUNT_EMAIL_CONFIRMATION_EXPIRE_DAYS = 1

# Quotas and pauses are those of `uamp_project.sign_in`, which every way to sign in shares.
ACCOUNT_RATE_LIMITS = False
MFA_RATE_LIMITS = False

ACCOUNT_ADAPTER = "uamp_project.account_security.adapters.AccountAdapter"
ACCOUNT_FORMS = {
    "add_email": "uamp_project.account_security.forms.EmailAddressForm",
    "reset_password": "uamp_project.account_security.forms.ForgottenPasswordForm",
    "reset_password_from_key": "uamp_project.account_security.forms.NewPasswordForm",
}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_NOTIFICATIONS = True
# A person has one address. A new one replaces it when it is confirmed.
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_METHODS = ["password", "mfa"]
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
ACCOUNT_LOGIN_TIMEOUT = 600
ACCOUNT_USER_DISPLAY = "uamp_project.account_security.adapters.name_of"

MFA_ADAPTER = "uamp_project.account_security.adapters.SecondFactorAdapter"
MFA_FORMS = {
    "authenticate": "uamp_project.account_security.codes.SignInCodeForm",
    "reauthenticate": "uamp_project.account_security.codes.ConfirmCodeForm",
    "activate_totp": "uamp_project.account_security.codes.NewAppForm",
    "add_webauthn": "uamp_project.account_security.passkeys.NewPasskeyForm",
    "authenticate_webauthn": "uamp_project.account_security.passkeys.SignInPasskeyForm",
    "reauthenticate_webauthn": "uamp_project.account_security.passkeys.ConfirmPasskeyForm",
    "login_webauthn": "uamp_project.account_security.passkeys.OnlyPasskeyForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RECOVERY_CODES_SHOW_ONCE = True
# Codes of the periods before and after the current one are accepted: clocks differ.
MFA_TOTP_TOLERANCE = 1
# An address that is not confirmed yet does not keep its person from protecting the account.
MFA_ALLOW_UNVERIFIED_EMAIL = True

# Where emails go: nowhere, to an SMTP server, as files into DATA_DIR/mails, or to the terminal.
UAMP_MAIL = choice("UAMP_MAIL", "off", ("off", "smtp", "file", "console"))
EMAIL_BACKEND = {
    "off": "django.core.mail.backends.dummy.EmailBackend",
    "smtp": "django.core.mail.backends.smtp.EmailBackend",
    "file": "django.core.mail.backends.filebased.EmailBackend",
    "console": "django.core.mail.backends.console.EmailBackend",
}[UAMP_MAIL]
EMAIL_FILE_PATH = DATA_DIR / "mails"
EMAIL_HOST = string("UAMP_MAIL_HOST", "localhost")
EMAIL_PORT = integer("UAMP_MAIL_PORT", 587, minimum=1, maximum=65_535)
EMAIL_HOST_USER = string("UAMP_MAIL_USERNAME")
EMAIL_HOST_PASSWORD = string("UAMP_MAIL_PASSWORD")
_SECURITY = choice("UAMP_MAIL_SECURITY", "starttls", ("starttls", "tls", "none"))
EMAIL_USE_TLS = _SECURITY == "starttls"
EMAIL_USE_SSL = _SECURITY == "tls"
EMAIL_TIMEOUT = number("UAMP_MAIL_SECONDS", 10, minimum=1, maximum=120)
DEFAULT_FROM_EMAIL = SERVER_EMAIL = string("UAMP_MAIL_FROM", "UAMP <uamp@localhost>")
