"""What each page is: the question in its URL, and what its template shows."""
