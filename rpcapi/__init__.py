"""What crosses the bus between API and conductors: methods, versions, queues, transports, the client."""
