"""One module per engine: find it, build its command line, know when it is ready, read its configuration back."""
