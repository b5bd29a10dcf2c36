#!/usr/bin/env bash
# Runs the small cases of sanitized.py under compute-sanitizer: sanitize.sh [memcheck | racecheck | initcheck | synccheck]
set -euo pipefail
cd "$(dirname "$0")/../.."
tool="${1:-memcheck}"
sanitizer="$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)"
options=(--tool "$tool" --error-exitcode 9 --target-processes all)
# Without the caching allocator every tensor has bounds of its own, so that a read past one is seen.
export PYTORCH_NO_CUDA_MEMORY_CACHING=1 CMIR_TEST_GPU=1 PYTHONPATH="$PWD:$PWD/tests${PYTHONPATH:+:$PYTHONPATH}"
exec "$sanitizer" "${options[@]}" python tests/gpu/sanitized.py
