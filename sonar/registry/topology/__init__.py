"""Sites, endpoints and names from the systems of grids: read, compared, and applied as a whole."""
