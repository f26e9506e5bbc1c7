"""Observers of a run, and the events that they get."""
