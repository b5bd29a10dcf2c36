"""Settings for every test: kernels run in Triton's interpreter unless CMIR_TEST_GPU=1 asks for the GPU."""

import atexit
import os
import shutil
import tempfile

# Triton reads this when a kernel is defined, so it is set before anything imports triton.
if os.environ.get("CMIR_TEST_GPU") != "1":
    os.environ["TRITON_INTERPRET"] = "1"

# A cache of their own: what one run left behind must not decide the next, nor fill the user's. Workers inherit it.
if "CMIR_CACHE_DIR" not in os.environ:
    os.environ["CMIR_CACHE_DIR"] = tempfile.mkdtemp(prefix="cmir-tests-")
    atexit.register(shutil.rmtree, os.environ["CMIR_CACHE_DIR"], ignore_errors=True)
