"""Tests of the audit: its rows, its page, and the roles that may do what it records."""
