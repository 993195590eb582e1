"""Sign-in with a password: known browsers, wrong passwords, quotas and hashing.

The keys, tickets and scopes of programs are in `sessions_app.access`.
"""
