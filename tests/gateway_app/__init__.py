"""The foreign protocols, on the real server: edges by HTTP and sockets, pure files by values."""
