"""Signed access tokens (JWT): those of configured issuers, and those that this server issues.

Whose connection it is, by a token or otherwise, is found in `sessions_app.access.auth`.
"""
