"""The API, piece by piece."""
