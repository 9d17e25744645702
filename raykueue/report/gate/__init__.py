"""The gate: may these results be released upon? It reads reports and nothing else."""
