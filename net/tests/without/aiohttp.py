"""Stands first on the path of the tests' programs (conftest.py), so that nats-py does not find
aiohttp, which it would import for web sockets. That import is more than half of a program's start.
"""

raise ImportError("not for the tests of weft.net")
