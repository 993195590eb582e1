"""Tests of the protocol package: no socket, no clock, no database."""
