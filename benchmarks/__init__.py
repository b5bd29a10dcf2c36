"""Benchmarks of cmir on one GPU: see README.md beside this file."""
