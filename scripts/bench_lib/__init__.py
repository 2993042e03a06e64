"""The benchmark: the machine (machine), the programs it runs (programs, place, wire), the measurements (measures,
timing, growth) and the output (figures)."""
