"""Benchmarks: `python -m bench.NAME` prints one table, then one line with its figures and PASS or FAIL.

A benchmark compares with a named peer in the same run, writes what it measured under `bench/results/`, and ends with
exit status 1 if a figure misses its aim.
"""
