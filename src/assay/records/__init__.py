"""The frozen types that are written to the record."""
