"""Tests of second factors, mail addresses and forgotten passwords."""
