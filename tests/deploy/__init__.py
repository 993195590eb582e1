"""The files that operators deploy with: image, Compose, systemd, proxies, and the Helm chart.

`expected` has what all of them must agree with: the settings, commands and queues of the server.
test_validators.py runs the validators of these files that are on the PATH; the other modules read
the files themselves, and need nothing.
"""
