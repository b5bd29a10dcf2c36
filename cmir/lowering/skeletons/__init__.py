"""Kernel skeletons: ordinary Triton source whose hooks the printers replace with a mask's own code."""
