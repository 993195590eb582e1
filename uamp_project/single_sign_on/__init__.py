"""Signing in with an OpenID Connect provider: its settings, the flow, and groups as roles.

Signing in with a password is in `uamp_project.sign_in`; accounts of subjects of issuers are
`sessions_app.bearer_tokens.people`.
"""
