"""The playbooks that come with Ingot; those of an operator are in [ansible] playbooks_path."""
