"""What is wrong in the grid, since when and whose it is: judged once, for all readers."""
