"""A trainer's process and its result: what is believed, what is not, and that nothing of it is left running."""



def test_a_good_trainer_brings_a_model(execute, project):
    report = execute()
    assert report.problems == ()
    assert report.run.status == "completed", report.run.reason
    assert project.ledger.model(report.model).state == "registered"
