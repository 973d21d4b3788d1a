"""The commands that need nothing but the database."""
