"""A module for each source: its documents -> a topology."""
