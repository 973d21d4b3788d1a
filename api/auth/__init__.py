"""Authentication and policy: who a user is, and what they may do."""
