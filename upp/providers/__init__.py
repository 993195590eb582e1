"""Providers, each creating models of one kind; only `agents_app` imports them.

Each vendor has a module for its server, one for requests and one for answers; `http` sends and
reads for all of them. The configuration of providers is in `upp.config`.
"""
