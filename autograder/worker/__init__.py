"""What runs beside a student's code: copied whole to where that code can see it.

Imports nothing of the autograder but itself, and of `mpedu` only what every unit may use.
"""
