"""What observes a run, and what observers are told."""
