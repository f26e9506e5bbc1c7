"""First on the path of the tests' programs (conftest.py): nats-py, which takes aiohttp for web
sockets where it finds it, does without. It is more than half of what a program needs to start."""

raise ImportError("not for the tests of weft.net")
