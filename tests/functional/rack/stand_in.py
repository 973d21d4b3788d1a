"""The stand-in of the driver kit, for the tests of Ingot itself."""

from ingot.driver_kit.stand_in import TOKEN, AgentClient, Service, wait_until

__all__ = ["TOKEN", "AgentClient", "Service", "wait_until"]
