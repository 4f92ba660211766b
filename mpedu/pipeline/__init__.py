"""The engine: every rank runs its list of a `Schedule`, action by action, on real tensors."""

from mpedu.pipeline.engine import PipelineEngine
from mpedu.pipeline.step import StepResult
from mpedu.pipeline.torch_peer import to_torch_pipelining

__all__ = ["PipelineEngine", "StepResult", "to_torch_pipelining"]
