"""Gate tests: the product as a user gets it, installed from its wheel."""
