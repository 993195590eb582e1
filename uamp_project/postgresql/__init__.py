"""Django's PostgreSQL backend, without the indexes that this server does not use."""
