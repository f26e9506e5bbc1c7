"""Channels and calls between programs on several machines."""
