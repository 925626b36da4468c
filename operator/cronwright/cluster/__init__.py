"""Kubernetes, behind a port: what the controller may ask of it, and the adapter that asks the real one."""
