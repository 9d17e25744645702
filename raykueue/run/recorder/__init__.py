"""The recorder: the one process of a run that watches, writes the journal and audits.

`python -m raykueue.run.recorder --folder RUN` reads `RUN/recorder.json` (`config`), lists and watches every kind of
`raykueue.model.kinds` (`intake`), proves by sentinels that it has seen everything up to a revision (`sentinels`,
`barriers`), writes `RUN/journal.jsonl` (`journal_file`), feeds the ledger (`auditor`), and answers test processes on
`RUN/recorder.sock` (`service`, `scopes`, `judging`). `launch` starts it; `raykueue.run.recording` is its client.
"""
