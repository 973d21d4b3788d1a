"""Machines without any setting in their firmware, where only Ingot answers: see devstack/machine-room.sh."""
