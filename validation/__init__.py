"""Proves a result against its document: rules in YAML, every number found again with its place, values normalised."""
