"""Campaigns without a machine: a simulated server process, and whole campaigns in memory. All of it is *simulated*."""
