"""Incidents of links, and their notifications."""
