"""Pictures of schedules, timelines and formulas, each with alternative text and a text form.

Importing this loads no matplotlib: only drawing does, in `pictures`.
"""

from mpedu.plot.bench_figures import bench_figure
from mpedu.plot.checkpoint_figures import (
    checkpoint_run_figure,
    gpipe_memory_figure,
    recompute_figure,
    sawtooth_figure,
)
from mpedu.plot.collective_figures import size_figure, size_sliders
from mpedu.plot.deadlocks import draw_deadlock
from mpedu.plot.figures import (
    bubble_curve,
    efficiency_curve,
    optimum_figure,
    optimum_sliders,
)
from mpedu.plot.in_flight_figures import in_flight_figure, in_flight_sliders, weights_figure
from mpedu.plot.lanes import draw_lanes
from mpedu.plot.memory_figures import (
    bills_figure,
    memory_figure,
    memory_sliders,
    partition_figure,
)
from mpedu.plot.pictures import Picture
from mpedu.plot.runs import loss_curve, overlay, report_figure
from mpedu.plot.schedule_figures import bubble_memory_figure, messages_figure
from mpedu.plot.text import timeline_text
from mpedu.plot.views import draw_schedule, draw_timeline, in_flight_curve, triangle_figure

__all__ = [
    "Picture",
    "bench_figure",
    "bills_figure",
    "bubble_curve",
    "bubble_memory_figure",
    "checkpoint_run_figure",
    "draw_deadlock",
    "draw_lanes",
    "draw_schedule",
    "draw_timeline",
    "efficiency_curve",
    "gpipe_memory_figure",
    "in_flight_curve",
    "in_flight_figure",
    "in_flight_sliders",
    "loss_curve",
    "memory_figure",
    "memory_sliders",
    "messages_figure",
    "optimum_figure",
    "optimum_sliders",
    "overlay",
    "partition_figure",
    "recompute_figure",
    "report_figure",
    "sawtooth_figure",
    "size_figure",
    "size_sliders",
    "timeline_text",
    "triangle_figure",
    "weights_figure",
]
