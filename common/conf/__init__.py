"""Configuration: one module per option group, loaded once by each command and passed on from there.

Names of groups and options are Ironic's where the thing is the same, so that an operator's file carries over.
"""
