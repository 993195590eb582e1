"""Connected agents: daemons that register over the server's sockets and answer there."""
