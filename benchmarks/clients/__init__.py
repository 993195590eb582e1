"""The programs that drive a measured server, each in a process of its own."""
