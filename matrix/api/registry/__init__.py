"""The registry by REST: one module for each kind of row, and one for each stage they share."""
