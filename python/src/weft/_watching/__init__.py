"""Observers of a run, and the events that are reported to them."""
