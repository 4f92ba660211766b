"""What was judged: recorded as it comes, found again, published."""
