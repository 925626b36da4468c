"""The shell: events and time in, decisions of `core` carried out through the port. Nothing decides here."""
