"""Gradients summed over all ranks that hold a parameter, beside the backwards still to come.

Data parallelism: each data rank runs the same list on samples of its own. As soon as the last
backward of a stage has run, its sums start (as in Li et al. 2020, section 3.2.3), in the order of
the list and so alike on all data ranks. A parameter with copies in stages of several ranks, such as
a tied embedding, is summed over these ranks when all else is done.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from mpedu.alone import Done
from mpedu.comm import Comm, Request
from mpedu.pipeline.stages import Stage
from mpedu.schedule import Action

Tied = Mapping[str, Sequence[int]]  # the stages that hold a copy, by the parameter's name in each
SMALL_BYTES = 256 * 1024  # below, one call costs what any other does


class GradientSums:
    """What an engine sums over ranks, on one of them.

    own: this rank's list. owner: the rank of each stage. data: the data ranks; None where there are
    no others. tied: the same on every rank.
    ValueError for stages whose parameters cannot be known, and for copies that are not alike.
    """

    def __init__(
        self,
        own: Sequence[Action],
        owner: Mapping[int, int],
        comm: Comm,
        stages: Mapping[int, Stage],
        data: Comm | None,
        tied: Tied,
    ) -> None:
        self._data = data
        self._modules = _modules(stages) if data is not None or tied else {}
        self._copies = list(_copies(self._modules, owner, comm, tied))
        self._due: dict[Action, list[nn.Parameter]] = defaultdict(list)
        if data is not None:
            last = {action.stage: i for i, action in enumerate(own) if action.kind != "F"}
            for parameter, holding in _holders(self._modules).items():
                self._due[own[max(last[stage] for stage in holding)]].append(parameter)
            require_alike(data, _holders(self._modules), "the data ranks")
        self._earlier: dict[nn.Parameter, Tensor] = {}
        self._started: list[tuple[list[nn.Parameter], Request]] = []

    def begin(self) -> None:
        """Puts aside what earlier steps have left in .grad: it has been summed already."""
        summed = _holders(self._modules) if self._data is not None else self._tied_here()
        for parameter in summed:
            if parameter.grad is not None:
                self._earlier[parameter], parameter.grad = parameter.grad, None

    @torch.no_grad()
    def after(self, action: Action) -> None:
        """Starts the sums over data ranks of what has its whole gradient after `action`."""
        if self._data is None or action not in self._due:
            return
        for group in _groups(p for p in self._due[action] if p.requires_grad):
            gradients = [_gradient(p).contiguous() for p in group]
            x = torch.cat([g.flatten() for g in gradients]) if len(group) > 1 else gradients[0]
            self._started.append((group, self._data.all_reduce(x, async_op=True)))

    @torch.no_grad()
    def total(self, loss: Tensor) -> Request:
        """Starts the sum of a number over the data ranks."""
        if self._data is None:
            return Done(loss)
        started: Request = self._data.all_reduce(loss, async_op=True)
        return started

    @torch.no_grad()
    def finish(self) -> None:
        """Returns when every .grad is the sum over all ranks, and over the steps before."""
        for group, request in self._started:
            parts = request.wait().flatten().split([p.numel() for p in group])
            for parameter, part in zip(group, parts, strict=True):
                parameter.grad = part.view_as(parameter)
        self._started.clear()
        for ranks, parameter in self._copies:
            if parameter.requires_grad:
                parameter.grad = ranks.all_reduce(_gradient(parameter).contiguous())
        for parameter, earlier in self._earlier.items():
            parameter.grad = earlier if parameter.grad is None else earlier.add_(parameter.grad)
        self._earlier.clear()

    def _tied_here(self) -> list[nn.Parameter]:
        return [parameter for _, parameter in self._copies]


@torch.no_grad()
def require_alike(comm: Comm, parameters: Iterable[Tensor], whose: str) -> None:
    """Nothing; ValueError, on all ranks of `comm`, where their parameters differ.

    Told by their number and two sums, which other initial values do not share.
    """
    found = torch.zeros(3, dtype=torch.float64, device=comm.device)
    for parameter in parameters:
        values = parameter.double()
        found += torch.stack([values.new_tensor(values.numel()), values.sum(), values.abs().sum()])
    highest, lowest = comm.all_reduce(torch.stack([found, -found]), "max")
    if not torch.equal(highest, -lowest):
        raise ValueError(
            f"the parameters of {whose} differ; give every rank the same, as from one seed"
        )


def _gradient(parameter: nn.Parameter) -> Tensor:
    """Its gradient, zeros where this rank's samples do not reach it: others' may."""
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _modules(stages: Mapping[int, Stage]) -> dict[int, nn.Module]:
    for number, stage in stages.items():
        if not isinstance(stage, nn.Module):
            raise ValueError(
                f"stage {number} is a {type(stage).__name__}, and the gradients of its parameters "
                "are to be summed over ranks; make it an nn.Module, whose parameters are known"
            )
    return {number: stage for number, stage in stages.items() if isinstance(stage, nn.Module)}


def _holders(modules: Mapping[int, nn.Module]) -> dict[nn.Parameter, list[int]]:
    """The stages that hold each parameter of this rank."""
    found: dict[nn.Parameter, list[int]] = defaultdict(list)
    for number, module in modules.items():
        for parameter in module.parameters():
            found[parameter].append(number)
    return found


def _copies(
    modules: Mapping[int, nn.Module], owner: Mapping[int, int], comm: Comm, tied: Tied
) -> Iterator[tuple[Comm, nn.Parameter]]:
    """This rank's parameters with copies on other ranks, and the ranks that hold one.

    Every rank takes part in making the groups, also those without a copy.
    """
    for name, holding in tied.items():
        own = [modules[number].get_parameter(name) for number in holding if number in modules]
        if any(parameter is not own[0] for parameter in own):
            raise ValueError(
                f"stages {[s for s in holding if s in modules]} of rank {comm.rank} are tied by "
                f"{name} and hold two parameters; give both modules the same one"
            )
        if len({owner[number] for number in holding}) == 1:
            continue
        ranks = comm.split(int(bool(own)))
        if own:
            require_alike(ranks, own[:1], f"stages {list(holding)}, tied by {name},")
            yield ranks, own[0]


def _groups(parameters: Iterable[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Those summed in one call: all small ones of a dtype, and each large one by itself."""
    small: dict[torch.dtype, list[nn.Parameter]] = defaultdict(list)
    large = []
    for parameter in parameters:
        if parameter.nbytes < SMALL_BYTES:
            small[parameter.dtype].append(parameter)
        else:
            large.append([parameter])
    return [*small.values(), *large]
