"""Sonar sends test transfers between grid storage endpoints and records their rates."""
