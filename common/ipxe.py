"""What iPXE makes of the words of a command (used by api, through common.iscsi, and by drivers)."""

OPERATORS = frozenset(("||", "&&", ";"))
"""Words that stand between commands of one line."""
