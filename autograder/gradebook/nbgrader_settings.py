"""What the nbgrader_config.py of a course says: its gradebook, its penalty for being late."""

import math
from collections.abc import Callable
from pathlib import Path

from nbgrader.preprocessors import AssignLatePenalties  # type: ignore[import-untyped]
from traitlets.config import Config
from traitlets.config.loader import ConfigFileNotFound, PyFileConfigLoader

SETTINGS = "nbgrader_config.py"
# (student, score, seconds late) -> points taken off, at most the score; None for none
Penalty = Callable[[str, float, float], float | None]


def read_settings(folder: Path) -> Config:
    """nbgrader's settings in a folder, empty where there are none; ValueError if they fail."""
    try:
        return PyFileConfigLoader(SETTINGS, path=str(folder.resolve())).load_config()
    except ConfigFileNotFound:
        return Config()
    except Exception as error:  # whatever stands in that file
        raise ValueError(
            f"{folder / SETTINGS} cannot be read ({type(error).__name__}: {error}); mend it or"
            " own_config.py beside it, or write it anew with ./course release."
        ) from error


def gradebook_url(settings: Config) -> str | None:
    """The database that they name, None if they name none."""
    found = settings.CourseDirectory.get("db_url")
    return None if found is None else str(found)


def late_penalty(settings: Config) -> Penalty:
    """The penalty by the plugin that they choose, as nbgrader's own steps ask for it."""
    step = AssignLatePenalties(config=settings)
    step.init_plugin()

    def penalty(student: str, score: float, seconds_late: float) -> float | None:
        try:
            points = step.plugin_inst.late_submission_penalty(student, score, seconds_late)
            if points is None:
                return None
            if not math.isfinite(points):
                raise ValueError(f"it gave {points}")
        except Exception as error:  # whatever stands in that plugin
            raise ValueError(
                f"The late penalty of nbgrader's settings failed for {student}"
                f" ({type(error).__name__}: {error}); mend it in own_config.py, and run the same"
                " command again."
            ) from error
        return min(max(0.0, float(points)), score)

    return penalty
