"""Sites: each as source and as destination, among its peers, and what is planned for it."""
