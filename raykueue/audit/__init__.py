"""Pure: the ledger that folds events into findings, and the judge."""
