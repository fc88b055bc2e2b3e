"""Which links have passed sets of criteria: the search for it, and how they stand now."""
