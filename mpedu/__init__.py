"""Model parallelism from NumPy to real ranks: schedules, their simulation and their drawing."""
