"""The handler of the driver kit, for the tests of Ingot itself."""

from ingot.driver_kit.http_handler import FunctionServer, Handler

__all__ = ["FunctionServer", "Handler"]
