"""Payment tokens: an account behind a signed secret, locks on it, its end, money added to it."""
