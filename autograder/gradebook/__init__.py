"""nbgrader's gradebook and notebooks for formgrader: filled from results, read back."""
