"""The project's own measurements: ``python -m benchmarks`` prints what its speed is, beside a hand-written loop."""
