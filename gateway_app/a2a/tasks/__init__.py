"""Tasks of A2A as views of responses, before a version has its words for them.

Pure: what is shown of a response, what a client's message means, payments and errors.
"""
