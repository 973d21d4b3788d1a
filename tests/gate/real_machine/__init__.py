"""Deployments of a machine of which only the metal is not real: firmware, disks, agent and system are.

devstack/real-machine.sh builds what they need and runs them.
"""
