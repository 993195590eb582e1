"""Tests of `upp`: pure code and local sockets, no database."""
