"""The benchmark: what it runs on (machine), what it runs (programs, place), what it measures (measures, growth) and
what it says afterwards (figures)."""
