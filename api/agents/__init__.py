"""What a booting machine and its agent ask for, without credentials."""
