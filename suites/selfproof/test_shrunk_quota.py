from raykueue.run.states import Running


def test_a_quota_that_is_lowered_below_what_is_used_is_told(queue, submit, sabotage, expects):
    """Use beyond a quota that was lowered afterwards is put down to the edit, and to nobody's admission."""
    submit("rayjob.yaml").until(Running)
    expects("quota-respected", "quota-edited", at_least={"cpu": "1500m"}, at_most={"cpu": "1500m"})

    sabotage.shrink(queue, "cpu", "1")
