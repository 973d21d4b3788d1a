"""What devstack/quickstart.sh runs: an image, three machines, a user's whole day with them, and the proofs of it."""
