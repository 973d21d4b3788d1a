"""Tests of the benchmarks: figures, tables, what is read of processes; the load on a service of their own."""
