"""A mask_mod as a graph of torch's operators, and what it asked of the tensors that it captures while it ran.

The predicate runs once, on four 0-d tensors. What it asks torch for besides tensors becomes a part of the graph as it
is then, and would be the same for every tensor that the compiled mask is given later:

    a value, `int(t[0])`, `if t[0] > 3`, `t.tolist()`,
    and where torch takes a number, `q.clamp(t[0], 5)`  refused, where it stands
    a shape, `t.shape`, `len(t)`, a loop over `t`       kept, and told by `Trace.shapes`, for a fact to be made of it
    a dtype, a device, a number of dimensions           kept

A node of the graph knows the line of the predicate that made it (`line_of`), for errors and for the terms it becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cmir.errors import SourceLocation, SpecError
from cmir.frontend.source import user_location

if TYPE_CHECKING:
    import torch

ARGUMENTS = ("b", "h", "q_idx", "kv_idx")
"""Of a mask_mod, by position, whatever it calls them."""

_LINE = "cmir_line"
"""The entry of a node's meta that holds its line."""

SHAPES = {"shape", "size", "numel", "nelement", "__len__", "stride", "is_contiguous", "nbytes", "is_same_size"}
"""Questions whose answer depends on the shape of a tensor alone."""

FORMS = {
    *("ndim", "dim", "ndimension", "layout", "type", "element_size", "itemsize", "get_device", "requires_grad"),
    *("is_floating_point", "is_complex", "is_signed", "is_cuda", "is_cpu", "is_meta", "is_sparse", "is_leaf"),
}
"""Questions whose answer depends on neither the shape nor the values."""

WORDS = {
    "__int__": "int()",
    "__float__": "float()",
    "__bool__": "bool() or a branch on it",
    "__index__": "an index of a Python sequence",
    "__repr__": "printing it",
    "__format__": "printing it",
    "__contains__": "in",
}


class Shape(NamedTuple):
    """A dimension of a captured tensor that the predicate asked for the length of, and where."""

    tensor: torch.Tensor
    dimension: int
    location: SourceLocation | None


@dataclass
class Trace:
    """The graph, where captured tensors are attributes of its module, and what was asked."""

    graph: Any = None
    looked: bool = False
    """Whether it asked torch for anything but tensors, dtypes and devices."""
    shapes: list[Shape] = field(default_factory=list[Shape])
    refused: SpecError | None = None


def traced(
    mask_mod: Callable[[Any, Any, Any, Any], Any], names: Mapping[int, str], where: SourceLocation | None
) -> Trace:
    """The trace of a predicate; `names` are those of the tensors that it captures, by identity.

    Raises:
        SpecError: it reads a value, or does not run on four 0-d tensors.
    """
    import torch
    from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    trace = Trace()
    arguments: dict[int, torch.Tensor] = {}
    made: dict[int, tuple[torch.Tensor, list[torch.Tensor]]] = {}
    """By identity: tensors that the predicate made, and the captured ones and arguments that they are made of."""

    def sources(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        each = [source for t in tensors for source in (made[id(t)][1] if id(t) in made else [t])]
        return list({id(source): source for source in each}.values())

    def note_shape(tensors: list[torch.Tensor], dimensions: Iterable[int] | None) -> None:
        location = user_location()
        for source in sources(tensors):
            if id(source) not in arguments:
                some = range(source.dim()) if dimensions is None or id(tensors[0]) in made else dimensions
                trace.shapes += [Shape(source, dimension, location) for dimension in some]

    def refuse_value(question: str, tensors: list[torch.Tensor], how: str | None = None) -> SpecError:
        """The error of the first value that is read; remembered, should the predicate catch it."""
        if any(id(source) in arguments for source in sources(tensors)):
            message = (
                "the mask_mod looks at a value: its control flow depends on an index or a tensor, or it calls .item(); "
                "write torch.where(condition, a, b), & and | for if, and, or"
            )
        else:
            known = next((names[id(source)] for source in sources(tensors) if id(source) in names), None)
            of = f"the captured tensor '{known}'" if known else "a captured tensor"
            known, how = known or "t", how or WORDS.get(question, f"{question}()")
            message = (
                f"the mask_mod reads a value of {of} by {how}: the compiled mask would keep it, whatever tensor it is "
                f"given; index the tensor where its value is used, {known}[b] or {known}[q_idx], or, for a constant, "
                "read the number outside and capture it"
            )
        trace.refused = trace.refused or SpecError(message, user_location() or where)
        return trace.refused

    read: list[torch.Tensor] = []
    """Tensors whose value torch has taken since it was last asked for something."""

    class Reads(TorchDispatchMode):
        """Sees torch read a value, whoever asked: `full((), limit)` and `clamp(limit, 5)` do, for a number."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.ops.aten._local_scalar_dense.default:
                read.append(args[0])
            return func(*args, **(kwargs or {}))

    def note_line() -> None:
        """Tells the nodes that are new where the line that made them is."""
        tracer: Any = getattr(get_proxy_mode(), "tracer", None)
        location = user_location() or where
        for node in () if tracer is None else reversed(tracer.graph.nodes):
            if _LINE in node.meta:
                break
            node.meta[_LINE] = location

    class Index(TorchFunctionMode):
        """Scalars index without becoming Python numbers, as under FlexAttention; questions and lines are noted."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.__getitem__:
                tensor, index = args
                indices = cast("tuple[Any, ...]", index if isinstance(index, tuple) else (index,))
                indices = tuple(torch.tensor(x) if type(x) is int else x for x in indices)
                if all(isinstance(x, torch.Tensor) and x.dim() == 0 for x in indices):
                    func, args, kwargs = torch.ops.aten.index.Tensor, (tensor, list(indices)), None
            given = _tensors_in((args, kwargs or {}))
            read.clear()
            try:
                result = func(*args, **(kwargs or {}))
            except Exception as error:  # as good as a look, should the predicate catch it
                trace.looked = True
                if "get value out of a tracing tensor" in str(error):
                    raise refuse_value(_question(func), given) from None
                note_shape(given, None)
                raise
            note_line()
            inside = _tensors_in(result)
            if not isinstance(result, torch.Tensor | torch.dtype | torch.device):
                trace.looked = True
                self.asked(func, given, args, kwargs or {}, result, bool(inside))
            elif taken := sources(read):
                raise refuse_value(_question(func), taken, f"handing it to {_question(func)}() as a number")
            for tensor in inside:
                made.setdefault(id(tensor), (tensor, sources(x for x in given if x is not tensor)))
            return result

        def asked(self, func: Any, given: list[Any], args: Any, kwargs: Any, result: Any, parts: bool) -> None:
            """Notes a question about shapes; refuses one about values."""
            name = _question(func)
            if not sources(given) or name in FORMS or result is None:
                return
            if name in SHAPES or parts:  # parts: as many tensors as a dimension has entries
                dimension = 0 if name == "__len__" else kwargs.get("dim", args[1] if len(args) > 1 else None)
                one = name in ("__len__", "size") and isinstance(dimension, int)
                note_shape(given, [dimension % given[0].dim()] if one else None)
            else:
                raise refuse_value(name, given)

    def of_four(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:  # whatever else mask_mod has defaults for
        arguments.update((id(argument), argument) for argument in (b, h, q_idx, kv_idx))
        with Index(), Reads():
            return mask_mod(b, h, q_idx, kv_idx)

    try:
        trace.graph = make_fx(of_four)(*(torch.zeros((), dtype=torch.int64) for _ in ARGUMENTS)).graph
    except (IndexError, RuntimeError) as error:
        if trace.refused is None:
            said = str(error).partition("\n")[0]
            raise SpecError(
                f"the mask_mod does not run on four 0-d tensors, indexed by positions, b and h: {said}", where
            ) from None
    if trace.refused is not None:  # even if the predicate caught it
        raise trace.refused
    return trace


def line_of(node: Any) -> SourceLocation | None:
    """Where in the predicate the line is that made a node of the graph; None: no line did, as of what it returns."""
    return node.meta.get(_LINE)


def _question(func: Any) -> str:
    """The name of a function or of an attribute of torch."""
    return func.__self__.__name__ if func.__name__ == "__get__" else func.__name__


def _tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors among arguments or results, in lists, tuples and dicts too."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(cast("dict[Any, Any]", value).values())
    if isinstance(value, list | tuple):
        return [tensor for element in cast("list[Any]", value) for tensor in _tensors_in(element)]
    return []
