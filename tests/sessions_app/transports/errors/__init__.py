"""Every row of the error table, provoked on a real socket, and the errors of answers that began."""
