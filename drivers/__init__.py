"""Hardware types, the interfaces they are composed of, the steps these declare, and the implementations."""
