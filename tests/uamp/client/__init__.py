"""The Python client and the command line, against the real server over real sockets."""
