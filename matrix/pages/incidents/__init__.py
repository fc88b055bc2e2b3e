"""Pages of incidents: all of them, one, and what people decide there."""
