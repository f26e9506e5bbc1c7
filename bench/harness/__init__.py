"""The bench harness: definitions (targets), programs (build), runs (runner), figures (result), what a person reads (show)."""
