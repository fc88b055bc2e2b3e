"""Incidents: their evidence and sentences, and the rate targets of links."""
