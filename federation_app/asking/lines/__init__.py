"""Connections to the server of a peer, a module for each transport (envelope §7).

A line is open for the length of a block. It sends one question, or goes on with its stream, and
gives the records that come. The connections go to addresses that the rules of outbound requests
let through, by TLS 1.3.
"""
