"""The benchmarks start and end. No test here looks at a time."""
