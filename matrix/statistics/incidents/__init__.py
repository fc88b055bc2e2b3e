"""Which links are not as expected now, and which causes they have in common. Pure numpy."""
