"""What the fork server loads once, so that no rank has to: imported nowhere else."""

import torch.fx.experimental.symbolic_shapes  # noqa: F401  # torch's backward loads it at first use

import mpedu.pipeline
import mpedu.ranks  # noqa: F401
