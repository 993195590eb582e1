"""Tokens of other issuers, and sign-in with an OpenID Connect provider."""

from uamp_project.settings.environment import (
    choice,
    integer,
    items,
    json_object,
    jwt_issuers,
    string,
    switch,
)

# PEM files of the token-signing keys, of which the first signs; empty uses DATA_DIR/signing_keys.
UAMP_SIGNING_KEYS = items("UAMP_SIGNING_KEYS")
# The algorithm with which agents sign their answers; changing it rotates their keys.
UAMP_SIGNATURE_ALGORITHM = choice("UAMP_SIGNATURE_ALGORITHM", "RS256", ("RS256", "EdDSA", "ES256"))

# How often the head of a growing log is signed; it is also signed on request.
UAMP_CHECKPOINT_MINUTES = integer("UAMP_CHECKPOINT_MINUTES", 60, least=1)

UAMP_JWT_ISSUERS = jwt_issuers("UAMP_JWT_ISSUERS")
# The tolerated difference between an issuer's clock and this server's.
UAMP_JWT_LEEWAY_SECONDS = integer("UAMP_JWT_LEEWAY_SECONDS", 30, most=120)

# Whether visitors with an invite link may make an account; with a provider, they sign in there.
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
