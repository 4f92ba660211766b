"""What the fork server loads once, so that no rank has to: imported nowhere else."""

# ruff: noqa: F401
import torch._dynamo  # torch's optimisers load it when the first is made: over a second
import torch.fx.experimental.symbolic_shapes  # its backward, at first use: half a second

import mpedu.pipeline
import mpedu.ranks
