"""A2A tasks as views of responses, independent of the version that writes them.

Pure: the visible part of a response, the meaning of client messages, payments and errors.
"""
