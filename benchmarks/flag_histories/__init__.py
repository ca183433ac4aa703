"""Which flags a version of an engine takes, read from the source in its wheel without running any of it."""
