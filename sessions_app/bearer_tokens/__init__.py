"""Signed access tokens (JWT): those of configured issuers, and this server's own.

`sessions_app.access.auth` decides which principal a token or other credential belongs to.
"""
