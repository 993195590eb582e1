"""Signing in with a password: known browsers, wrong passwords, quotas and hashing.

Keys, tickets and scopes of programs are in `sessions_app.access`.
"""
