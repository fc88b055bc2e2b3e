"""Sonar sends test transfers between grid storage endpoints and records their rates."""

__version__ = "0.5"
