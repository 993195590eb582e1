"""Connected agents: daemons registered on this process's sockets, and their answers.

`agent_socket` and `answer` belong to a socket, `directory` and `connection_writer` to the process;
`turns` builds the event that a daemon receives. The rows are in `agents_app.connections`; handlers
register daemons.
"""
