"""The log fields, metrics and spans that operators read of a running server.

Every app may import this package, which knows none of them. What is stored in rows, such as the
audit or the cost of an answer, is elsewhere.
"""
