"""Sign-in with an OpenID Connect provider: its settings, the flow, and groups as roles.

Sign-in with a password is in `uamp_project.sign_in`; `sessions_app.bearer_tokens.people` maps the
subjects of issuers to accounts.
"""
