"""Connected agents: the daemons that registered on sockets of this process, and their answers.

What a socket holds (`agent_socket`, `answer`), what the process holds (`directory`), and the turn
as a daemon is sent it (`turns`). Rows are `agents_app.connections`; handlers register.
"""
