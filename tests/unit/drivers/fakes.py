"""The task in memory of the driver kit, for the tests of Ingot itself."""

from ingot.driver_kit.memory_task import ALL_FAKE, DriverTestCase, MemoryTask, configuration, node, port, portgroup

__all__ = ["ALL_FAKE", "DriverTestCase", "MemoryTask", "configuration", "node", "port", "portgroup"]
