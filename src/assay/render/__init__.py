"""Records to terminal, Markdown and HTML; formatting only."""
