"""Result records: how results come in from elsewhere, and how they go out again."""
