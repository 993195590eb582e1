"""The setup page of a server without accounts: the first operator, a model, a chat.

`token` guards the page, `models` offers what can answer, `forms` and `views` are the page, and
`operator` makes what it asks for (docs/adr/0058).
"""
