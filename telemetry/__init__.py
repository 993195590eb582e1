"""The fields of log lines, the metrics and the spans that operators read of a running server.

Every app may import this package, which knows none of them. What is stored in rows, such as the
audit or what an answer cost, is not here.
"""
