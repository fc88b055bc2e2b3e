"""Pages of expectations: all of them, and the form of one with what it matches beside."""
