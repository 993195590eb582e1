"""Stored media: who may read one, what kind it is, what is stored for whom.

Their REST views are in `chat_app.rest`. What a model is shown of a medium is in
`agents_app.conversation`.
"""
