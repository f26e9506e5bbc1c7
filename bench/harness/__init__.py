"""The bench harness: definitions (targets), programs (build), runs (runner), figures (result),
display (show)."""
