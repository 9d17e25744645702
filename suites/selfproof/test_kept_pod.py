from raykueue.run.states import Complete, Pending, Running


def test_a_pod_that_outlives_its_job_is_found(queue, submit, sabotage, expects):
    """A head pod that stays for 10 s after its job ended is reported, and so is that the next job runs beside it."""
    job = submit("rayjob.yaml").until(Running)
    heir = submit("rayjob.yaml", later_than=job).until(Pending)
    sabotage.keep_head(job, seconds=10)
    expects("no-survivors", "finished/clean-up", at_least_seconds=10, at_most_seconds=15)
    expects("no-overlap", "finished/clean-up", at_least={"cpu": "500m"})

    job.finish().until(Complete)
    heir.until(Running)
    job.delete().until_nothing_is_left()
