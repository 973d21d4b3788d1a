"""What is no vendor's: the base of hardware types, fake hardware, storage that is managed elsewhere."""
