"""One GPU as NVML shows it: errors by code, a time limit on calls, matching with the CUDA device, state, counter."""
