"""Django's PostgreSQL backend with indexes that this server uses, and no others."""
