"""Machines whose power comes from smart plugs: an example of a driver outside of Ingot's tree."""
