"""Bytes become a PreparedDocument: text in reading order, tables whole, lengths in tokens, a likeness to others."""
