"""How Django writes and reads times by itself, by language (FORMAT_MODULE_PATH)."""
