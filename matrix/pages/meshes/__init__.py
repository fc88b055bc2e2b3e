"""Pages of meshes: all of them, one, and the form of one with its cost beside."""
