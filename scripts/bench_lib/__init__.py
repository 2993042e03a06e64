"""The benchmark: what it runs on (machine), what it runs (programs, place, wire), what it measures (measures, timing,
growth) and what it says afterwards (figures)."""
