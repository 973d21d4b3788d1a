"""The whole API over HTTP, measured against the contract."""
