"""One run: owner, recorder, scopes, handles of jobs and queues, states and waits."""
