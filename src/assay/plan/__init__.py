"""Pure decisions: what the record means and what should be done next."""
