"""Providers: each makes models of one kind; only `agents_app` imports them.

A vendor has a module for its server, one for requests and one for answers; `http` sends and
reads for all. What a provider is configured with is in `upp.config`.
"""
