"""What was handed in: found, read with limits, repaired, turned into cells to run."""
