"""Providers: each module makes models of one kind; only `agents_app` imports them."""
