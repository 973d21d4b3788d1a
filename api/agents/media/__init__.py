"""Images from which machines boot without a network: made while they are sent, and kept nowhere."""
