"""What crosses the bus between API and conductors: methods, versions, transports, the client."""

TOPIC = "ingot.conductor"
