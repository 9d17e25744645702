"""Scripts: the jobs, benchmarks and acceptance. What they share is in `support`."""
