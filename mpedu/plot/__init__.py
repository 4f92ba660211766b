"""Pictures of schedules, timelines and formulas, each with alternative text and a text form.

Importing this loads no matplotlib: only drawing does, in `pictures`.
"""

from mpedu.plot.collective_figures import size_figure, size_sliders
from mpedu.plot.deadlocks import draw_deadlock
from mpedu.plot.figures import (
    bubble_curve,
    efficiency_curve,
    optimum_figure,
    optimum_sliders,
)
from mpedu.plot.lanes import draw_lanes
from mpedu.plot.memory_figures import (
    bills_figure,
    memory_figure,
    memory_sliders,
    partition_figure,
)
from mpedu.plot.pictures import Picture
from mpedu.plot.runs import loss_curve, overlay, report_figure
from mpedu.plot.text import timeline_text
from mpedu.plot.views import draw_schedule, draw_timeline, in_flight_curve, triangle_figure

__all__ = [
    "Picture",
    "bills_figure",
    "bubble_curve",
    "draw_deadlock",
    "draw_lanes",
    "draw_schedule",
    "draw_timeline",
    "efficiency_curve",
    "in_flight_curve",
    "loss_curve",
    "memory_figure",
    "memory_sliders",
    "optimum_figure",
    "optimum_sliders",
    "overlay",
    "partition_figure",
    "report_figure",
    "size_figure",
    "size_sliders",
    "timeline_text",
    "triangle_figure",
]
