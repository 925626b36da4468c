"""The command line: the operator, and the offline tools on the same code."""
