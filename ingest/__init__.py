"""Bytes become a Document: the limit, a look inside, a name by content; and a local inbox whose files have settled."""
