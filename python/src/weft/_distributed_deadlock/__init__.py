"""Deadlock over several OS processes and programs."""
