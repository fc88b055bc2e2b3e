"""The judge of the grid: what is failing, slow, fast or silent, since when, and whose it is."""
