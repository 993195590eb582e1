"""REST and pages of who may: the account, keys, OAuth, tickets of sockets."""
