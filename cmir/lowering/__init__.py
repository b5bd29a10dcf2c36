"""From tables of intervals to kernels: the structure, its printers and the kernel skeletons they fill."""
