"""The commands that contain a conductor."""
