"""Tests of the whole HTTP surface: the OpenAPI document, and who may do what on each path."""
