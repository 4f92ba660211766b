"""`Comm` over torch.distributed: gloo between processes on CPU, NCCL between GPUs."""

from mpedu.distributed.backend import ProcessComm
from mpedu.distributed.started import LostPeer

__all__ = ["LostPeer", "ProcessComm"]
