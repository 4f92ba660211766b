"""The named schedules: each a few lines that give a list."""

from mpedu.families.one_stage import gpipe, naive, one_f_one_b

SCHEDULES = {"naive": naive, "gpipe": gpipe, "1f1b": one_f_one_b}

__all__ = ["SCHEDULES", "gpipe", "naive", "one_f_one_b"]
