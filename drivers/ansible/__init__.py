"""The deploy interface ``ansible``: playbooks that run over SSH in the ramdisk of the agent."""
