"""What observes a run, and what is told of it."""
