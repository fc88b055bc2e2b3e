"""Pages of commissioning: all criteria sets, one with its links, a link's record, and the forms."""
