"""Against engines that are too large to install for every run: opt-in by environment variables."""
