"""Volumes of Cinder: the storage interface ``cinder``."""
