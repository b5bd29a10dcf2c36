"""Settings for every test: kernels run in Triton's interpreter unless CMIR_TEST_GPU=1 asks for the GPU."""

import os

# Triton reads this when a kernel is defined, so it is set before anything imports triton.
if os.environ.get("CMIR_TEST_GPU") != "1":
    os.environ["TRITON_INTERPRET"] = "1"
