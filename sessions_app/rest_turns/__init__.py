"""REST that starts, follows and ends turns: each request is events of a UAMP client.

They pass the handlers that the frames of a socket pass, so that members see what follows live.
Reads of rows are in `rest`.
"""
