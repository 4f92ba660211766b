"""Exercises, their checks, and the judge that grades answers it cannot trust."""
