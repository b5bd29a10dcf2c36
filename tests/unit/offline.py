# pyright: basic
"""Compiles Triton kernels for a Hopper GPU on a machine without one: a stub driver, `warmup`, and Triton's ptxas.

Triton decides at its import whether it interprets, and the other tests interpret: so scripts that use this run in
processes of their own, through `run`.
"""

import atexit
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NoReturn

REPOSITORY = Path(__file__).parents[2]


def run(script: str, folder: Path, timeout: int = 300) -> str:
    """Runs a Python script, which may import this module and those of `folder`, with Triton compiling; its output.

    CMIR_TRITON is the folder of another Triton than the installed one."""
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as directory:
        files = [Path(directory, name) for name in ("output", "errors")]
        server.stdin.write(json.dumps([script, str(folder), *map(str, files), timeout]) + "\n")
        server.stdin.flush()
        status = server.stdout.readline()
        output, errors = (file.read_text() if file.exists() else "" for file in files)
    assert status == "0\n", f"{output}{errors}exit status {status}"
    return output


@functools.cache
def _server() -> "subprocess.Popen[str]":
    """A process that has imported what scripts need, which takes as long as many of them: each runs in a fork of it."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    other = [os.path.abspath(path) for path in [os.environ.get("CMIR_TRITON")] if path]
    environment["PYTHONPATH"] = os.pathsep.join([*other, str(REPOSITORY), str(Path(__file__).parent)])
    server = subprocess.Popen(
        [sys.executable, "-c", "import offline; offline.serve()"],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    atexit.register(server.kill)
    return server


def serve() -> None:
    """Runs the scripts that `run` asks for, until it asks no more; answers each with its exit status."""
    import torch  # noqa: F401
    import triton.compiler.compiler
    import triton.runtime.cache
    import z3  # pyright: ignore[reportMissingTypeStubs]  # noqa: F401

    import cmir.runtime.compiling
    import cmir.runtime.loader  # noqa: F401

    # Triton's hash of its own files is part of the key of every kernel.
    getattr(triton.runtime.cache, "triton_key", getattr(triton.compiler.compiler, "triton_key", int))()
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            _run_here(*job)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run_here(script: str, folder: str, output: str, errors: str, timeout: int) -> NoReturn:
    """Runs a script in this process, which ends with it or when its time is over; what it prints goes to the files."""
    signal.alarm(timeout)
    for number, name in ((1, output), (2, errors)):
        with open(name, "w") as file:
            os.dup2(file.fileno(), number)
    status = 1
    try:
        sys.path.insert(0, folder)
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def zoo_mask(name: str):
    """The mask of the zoo of that name, tested by bits if ` by bits` follows it."""
    import cmir

    name, _, how = name.partition(" by ")
    return cmir.compile(Path(cmir.__file__).parent / "zoo" / f"{name}.mlir", test=how or "auto")  # pyright: ignore


def install() -> None:
    """Makes Triton compile for sm_90a whatever this machine has."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    class StubDriver(DriverBase):
        def __init__(self):
            pass

        @classmethod
        def is_active(cls):
            return True

        def map_python_to_cpp_type(self, ty):
            return ty

        def get_current_target(self):
            return GPUTarget("cuda", 90, 32)

        def get_active_torch_device(self):
            import torch

            return torch.device("cpu")

        def get_current_device(self):
            return 0

        def get_current_stream(self, idx=0):
            return 0

        def get_benchmarker(self):
            raise NotImplementedError

        def get_device_interface(self):
            raise NotImplementedError

        def get_empty_cache_for_benchmark(self):
            raise NotImplementedError

        def clear_cache(self, cache):
            pass

    triton.runtime.driver.set_active(StubDriver())


def compile_kernel(kernel, *arguments, **options):
    """The compiled kernel; a torch dtype among the arguments stands for a pointer to it."""
    return kernel.warmup(*arguments, grid=(1,), **options)


def compile_launcher(launcher):
    """The kernel of a `cmir.runtime.launcher.Launcher`, compiled; what it packs of arguments is what the PTX reads."""
    from cmir.runtime.driver import MOVES, packing_of

    both = zip(launcher.arguments, launcher.fixed, strict=True)
    moving = [0.1 if argument is float else 1024 for argument, value in both if value is MOVES]
    compiled = compile_kernel(launcher.kernel, *launcher.given(moving), *launcher.constants, num_warps=4)
    packing = packing_of(compiled.asm["ptx"], list(compiled.src.signature.values()), launcher.fixed)
    assert packing is not None, "Triton would have to launch it"
    return compiled


def require_direct(compiled) -> None:
    """Raises AssertionError where a launch of the kernel, all of its arguments moving, would be Triton's."""
    from cmir.runtime.driver import MOVES, packing_of

    kinds = list(compiled.src.signature.values())
    while kinds[-1] == "constexpr":
        kinds.pop()
    arguments = [1 if kind == "constexpr" else MOVES for kind in kinds]
    assert packing_of(compiled.asm["ptx"], kinds, arguments) is not None, (kinds, compiled.asm["ptx"][:4000])


def ptxas_log(compiled) -> str:
    """What ptxas says of a compiled kernel."""
    return log_of(compiled.asm["ptx"])


@functools.cache  # seconds, and asked for more than once
def log_of(text: str) -> str:
    from triton.backends.nvidia.compiler import get_ptxas

    with tempfile.TemporaryDirectory() as directory:
        ptx = Path(directory, "kernel.ptx")
        ptx.write_text(text)
        result = subprocess.run(
            [get_ptxas(90).path, "-v", "--gpu-name=sm_90a", str(ptx), "-o", str(Path(directory, "kernel.cubin"))],
            capture_output=True,
            text=True,
            check=True,
        )
    return result.stdout + result.stderr


def registers_and_spills(compiled) -> tuple[int, int]:
    """(registers a thread, bytes of spill stores) as ptxas reports them."""
    log = ptxas_log(compiled)
    registers = [int(number) for number in re.findall(r"Used (\d+) registers", log)]
    spills = [int(number) for number in re.findall(r"(\d+) bytes spill stores", log)]
    return max(registers), max(spills)


def spills_of_steps(compiled) -> list[int]:
    """Of each innermost loop in which two products or more begin, the loads and stores of spilled registers in it."""
    from triton.backends.nvidia.compiler import get_ptxas

    with tempfile.TemporaryDirectory() as directory:
        cubin = Path(directory, "kernel.cubin")
        cubin.write_bytes(compiled.asm["cubin"])
        disassemble = [str(Path(get_ptxas(90).path).with_name("nvdisasm")), "-c", str(cubin)]
        lines = subprocess.run(disassemble, capture_output=True, text=True, check=True).stdout.splitlines()
    labels = {found[1]: at for at, line in enumerate(lines) if (found := re.match(r"(\.L_x_\d+):", line))}
    jumps = (
        (labels.get(found[1], at), at) for at, line in enumerate(lines) if (found := re.search(r"BRA `\((.*)\)", line))
    )
    loops: list[range] = []
    # The shortest first: where a wait of a loop spins, far behind, its jump back spans more than the loop.
    for start, end in sorted(jumps, key=lambda jump: jump[1] - jump[0]):
        begun = sum("HGMMA" in line and "gsb0" in line for line in lines[start:end])
        if start < end and begun > 1 and not any(start <= loop.stop and loop.start <= end for loop in loops):
            loops.append(range(start, end))
    return [sum(bool(re.search(r"\b(LDL|STL)\b", lines[at])) for at in loop) for loop in loops]


def require_parallel_products(compiled) -> None:
    """Raises AssertionError where ptxas says that it runs the products of a warpgroup one after another."""
    log = ptxas_log(compiled)
    assert not re.search(r"C7514|C7515|wgmma", log), log
