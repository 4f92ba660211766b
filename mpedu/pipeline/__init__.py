"""The engine: every rank runs its list of a `Schedule`, action by action, on real tensors."""

from mpedu.pipeline.engine import PipelineEngine, StepResult

__all__ = ["PipelineEngine", "StepResult"]
