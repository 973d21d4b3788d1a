"""Where web servers look for Ironic's application."""
