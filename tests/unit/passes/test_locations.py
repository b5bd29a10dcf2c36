"""Whatever passes rewrite, every op knows where in the spec it comes from."""

import pytest

from cmir import zoo
from cmir.dialects.interval import SpanOp
from cmir.dialects.maskspec import RegionOp, SpecOp
from cmir.errors import locate
from cmir.tools.driver import Observer, parse, run_pipeline

PIPELINE = "check-regions,lint,lower-intervals,transpose,choose-axis,lower-descriptor,lower-attention"
MASKS = ["hstu", "hstu_meta", "shared_prompt", "clear", "strided", "random_eviction", "flamingo", "window_hf"]


class Located(Observer):
    """After every pass, every op is located in the file, and every span in the Region that it is from."""

    def __init__(self, file: str, regions: dict[str, range]) -> None:
        self.file, self.regions, self.passes = file, regions, 0

    def after(self, pass_, module) -> None:
        self.passes += 1
        for op in module.walk():
            place = locate(op)
            assert place is not None and place.file == self.file, f"{op.name} after {pass_.name}: {place}"
            if isinstance(op, SpanOp):
                assert place.line in self.regions[op.origins[0].rpartition(".")[0]], op


@pytest.mark.parametrize("name", MASKS)
def test_every_op_of_every_stage_is_located(name: str):
    text = zoo.path(name).read_text()
    module = parse(text, f"{name}.mlir")
    spec = next(op for op in module.walk() if isinstance(op, SpecOp))
    starts = [
        (op.sym_name.data, place.line) for op in spec.walk() if isinstance(op, RegionOp) and (place := locate(op))
    ]
    ends = [line for _, line in starts[1:]] + [text.count("\n") + 1]
    regions = {name: range(line, end) for (name, line), end in zip(starts, ends, strict=True)}
    observer = Located(f"{name}.mlir", regions)
    run_pipeline(module, [PIPELINE], observer=observer)
    assert observer.passes >= 12
