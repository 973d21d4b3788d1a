"""Types what the guides tell their readers to type; ``doc/README.md`` says how pages are written for it."""
