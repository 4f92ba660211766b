"""Pictures of schedules, timelines and formulas, each with alternative text and a text form.

Importing this loads no matplotlib: only drawing does, in `pictures`.
"""

from mpedu.plot.figures import (
    bubble_curve,
    efficiency_curve,
    optimum_figure,
    optimum_sliders,
)
from mpedu.plot.pictures import Picture
from mpedu.plot.runs import loss_curve, overlay, report_figure
from mpedu.plot.text import timeline_text
from mpedu.plot.views import draw_schedule, draw_timeline, in_flight_curve, triangle_figure

__all__ = [
    "Picture",
    "bubble_curve",
    "draw_schedule",
    "draw_timeline",
    "efficiency_curve",
    "in_flight_curve",
    "loss_curve",
    "optimum_figure",
    "optimum_sliders",
    "overlay",
    "report_figure",
    "timeline_text",
    "triangle_figure",
]
