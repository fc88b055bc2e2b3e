"""What people who look after a site do on its page: downtimes, caps and budgets, notes."""
