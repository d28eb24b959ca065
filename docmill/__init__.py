"""The words that the stages share: values, errors, codec, log. Imports nothing of ours and does no I/O."""

__version__ = "0.1.0"
