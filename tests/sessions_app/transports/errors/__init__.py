"""The error table, row by row, on a real socket, and responses that fail later."""
