"""The checks of each unit: unit_NN."""
