"""Backups: one file of pg_dump with a label, and the way back from it (docs/deployment.md)."""
