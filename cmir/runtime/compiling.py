"""`cmir.compile`: from a spec, as text or in Python, to a compiled mask.

    mask = cmir.compile("hstu.mlir")

Compiling needs no GPU and no torch.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Literal

from xdsl.dialects.builtin import ModuleOp

from cmir.dialects.maskspec import Parameter, SpecOp
from cmir.dialects.rule_ops import RuleOp
from cmir.errors import SpecError
from cmir.layouts import add_layout
from cmir.runtime import cache
from cmir.runtime.mask import CompiledMask
from cmir.runtime.modules import from_spec, text_of
from cmir.signature import DESCRIBE_ARGUMENTS
from cmir.sizes import Size
from cmir.tools import driver
from cmir.tools.located_parser import suggestion
from cmir.tools.verifier import verify

if TYPE_CHECKING:
    from cmir.analysis.proof.decide import Outcome
    from cmir.frontend.spec import MaskSpec
    from cmir.layouts import Layout

CHOICES = ("auto", "rows", "cols", "bits")
"""What `test` of `compile` may be."""


def compile(
    spec: str | Path | MaskSpec,
    *,
    statics: Mapping[str, int] | None = None,
    layout: Layout | Mapping[Literal["rows", "cols"], Layout] | None = None,
    test: Literal["auto", "rows", "cols", "bits"] = "auto",
    prove: bool | Literal["strict"] = False,
) -> CompiledMask:
    """Compile a mask.

    Args:
        spec: the path of a .mlir file with one `maskspec.spec`, or a `cmir.MaskSpec`.
        statics: other values for statics of the spec, e.g. `{"radius": 8}`.
        layout: the order in which tokens are stored, one of `cmir.layouts`, of both axes or of those that a dict names.
            Metadata keep the order of the tokens; q, k, v and the output are in the layout's, see `Descriptor.permute`.
        test: what the kernels test in partial tiles: intervals of rows, of columns, or a bit for every pair; by default
            what is cheapest, bits only where nothing else says the mask.
        prove: also prove of every pass that it kept what is visible, as `cm-opt --prove` does, which takes seconds;
            `mask.proofs` says what became of each. With "strict", what is not proved is an error too.

    Returns:
        The compiled mask. The same text gives the same object within a process, and comes from an on-disk cache between
        processes.

    Raises:
        SpecError: the spec is wrong, or is not to be tested by an axis that no number of intervals says; or a proof
            failed.
    """
    try:
        return _compile(spec, statics, layout, test, prove)
    except RecursionError:
        raise SpecError(
            "the spec is nested too deeply, or has too many Regions, for the compiler; make it flatter"
        ) from None
    except SpecError as error:
        if not isinstance(spec, str | Path):
            error.speak_python()
        raise


def _compile(
    spec: str | Path | MaskSpec,
    statics: Mapping[str, int] | None,
    layout: Layout | Mapping[Literal["rows", "cols"], Layout] | None,
    test: str,
    prove: bool | Literal["strict"],
) -> CompiledMask:
    if test not in CHOICES:
        raise SpecError(f"test= is {', '.join(CHOICES)}; got {test!r}")
    if prove not in (True, False, "strict"):
        raise SpecError(f"prove= is True, False or 'strict'; got {prove!r}")
    if not isinstance(spec, str | Path) and not hasattr(spec, "module"):
        hint = "; a mask_mod is imported first: cmir.compile(cmir.from_mask_mod(mask_mod))" if callable(spec) else ""
        raise SpecError(f"expected the path of a .mlir file or a cmir.MaskSpec, got {type(spec).__name__}{hint}")
    if isinstance(spec, str | Path):
        if "maskspec.spec" in str(spec):
            raise SpecError("expected the path of a .mlir file, got the text of a spec; write it to a file")
        path = Path(spec)
        try:
            text, name = path.read_text(encoding="utf-8").removeprefix("\N{BOM}"), str(path)
        except (OSError, UnicodeDecodeError) as error:
            from cmir.zoo import NAMES

            close = get_close_matches(str(spec), NAMES, 1, 0.75)
            hint = f"; the mask of the zoo is cmir.zoo.load({close[0]!r})" if close else ""
            raise SpecError(f"cannot read the spec {str(path)!r}: {error}{hint}") from None
        module = driver.parse(text, name)
    else:
        module = spec.module()
    specs = [op for op in module.walk() if isinstance(op, SpecOp)]
    if len(specs) != 1:
        raise SpecError(f"expected one maskspec.spec, found {len(specs)}", specs[1] if specs else module)
    if statics:
        if not isinstance(spec, str | Path):
            _refuse_fixed_constants(specs[0])
        specs = [with_statics(specs[0], statics)]
        module = ModuleOp([specs[0]])
    if layout is not None:
        specs = [add_layout(specs[0], layout)]
        module = ModuleOp([specs[0]])
    _check_parameters(specs[0])
    sizes: dict[str, Size] = getattr(spec, "sizes", {})  # of a mask_mod that was imported
    mask = _compiled(text_of(module), module, test, not isinstance(spec, str | Path), sizes)
    if prove:
        mask.proofs = _proofs(mask, test, prove == "strict")
    return mask


def _proofs(mask: CompiledMask, test: str, strict: bool) -> list[tuple[str, Outcome]]:
    """What became of the proof of every pass that makes the mask's module of its spec."""
    from cmir.tools.proving import Prover

    prover, module = Prover(strict), ModuleOp([mask.surface.clone()])
    passes = ["lower-intervals", "transpose", f"choose-axis{{test={test}}}", "lower-descriptor", "lower-attention"]
    driver.run_pipeline(module, passes, observer=prover)
    if text_of(module) != mask.ir:
        raise SpecError("the cached module of this mask is not what its passes make; remove the cache", mask.surface)
    return prover.outcomes


_masks: dict[str, CompiledMask] = {}


def _compiled(text: str, module: ModuleOp, test: str, in_python: bool, sizes: Mapping[str, Size]) -> CompiledMask:
    if test != "auto":
        text = f"{test}\0{text}"
    if meanings := _meanings(module):
        text = f"{meanings}\0{text}"
    # The same mask, which speaks another language, or knows what its lengths are of.
    known = text if not in_python else f"python\0{sorted(sizes.items())}\0{text}"
    if known not in _masks:
        _masks[known] = CompiledMask(module, *from_spec(cache.key_of(text), module, test), in_python, sizes)
    return _masks[known]


def _meanings(module: ModuleOp) -> str:
    """A digest of what the ops of other dialects in a spec mean, or '': it is no part of the spec's text."""
    kinds = {type(op) for op in module.walk() if isinstance(op, RuleOp)}
    digests: list[str] = []
    for kind in sorted(kinds, key=lambda kind: kind.name):
        try:
            source = Path(inspect.getfile(kind)).read_bytes()
        except (OSError, TypeError):  # it was never in a file
            source = token_bytes(16)
        digests.append(hashlib.sha256(source).hexdigest())
    return "".join(digests)


def with_statics(spec: SpecOp, statics: Mapping[str, int]) -> SpecOp:
    """A copy of the spec with other values for some statics.

    Raises:
        SpecError: there is no such static, or a value is no int.
    """
    known = {p.name for p in spec.parameters if p.kind == "static"}
    if not isinstance(statics, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SpecError(f"statics= takes a mapping of names of statics to ints, got {statics!r}")
    for name, value in statics.items():
        if name not in known:
            has = ", ".join(sorted(known)) or "none"
            hint = suggestion(str(name), known) or f"; it has {has}"
            raise SpecError(f"@{spec.sym_name.data} has no static '{name}'{hint}", spec)
        if type(value) is not int:
            raise SpecError(f"static '{name}' must be an int, got {value!r}", spec)
    copy = spec.clone()
    changed = [
        Parameter(p.name, p.kind, statics.get(p.name, p.value)) if p.kind == "static" else p for p in spec.parameters
    ]
    out = SpecOp(spec.sym_name.data, changed, copy.detach_region(copy.body))
    out.location = spec.location
    verify(out)  # a static may say how many integers an entry holds
    return out


def _refuse_fixed_constants(spec: SpecOp) -> None:
    """A Python spec computes its constant tables itself, from values of statics that an override would leave behind."""
    for op in spec.constant_tables().values():
        raise SpecError(
            f"statics= cannot be given: constant table '{op.sym_name.data}' was computed in Python; "
            "build the spec with the other values instead",
            op,
        )


def _check_parameters(spec: SpecOp) -> None:
    for p in spec.parameters:
        if p.name in DESCRIBE_ARGUMENTS:
            raise SpecError(f"metadata '{p.name}' has the name of an argument of describe; rename it", spec)
