"""Sessions for the invariants' loops: one that bypasses the run logger, and honest ones that reach
the target."""

OPEN = """\
          - id: open
            name: mcp__harness__open_experiment
            input: {hypothesis: The nearest centroid separates the blobs, rationale: They are round.}
"""
LOOK = """\
          - {id: look, name: Read, input: {file_path: "${open.folder}/config.yaml"}}
"""
CONFIGURE = """\
      - tools:
          - {id: config, name: Write, input: {file_path: "${open.folder}/config.yaml", content: "model: MODEL\\n"}}
"""
RUN = """\
      - tools:
          - {id: start, name: mcp__harness__start_run, input: {}}
      - tools:
          - {id: status, name: mcp__harness__run_status, input: {wait_seconds: 120}}
"""
HONEST = f"{CONFIGURE.replace('MODEL', 'centroids')}{RUN}"
"""Turns that follow on LOOK: the configuration, and the plan's own training."""
ORACLE = """\
  - role: oracle
    experiment: NUMBER
    attempt: 1
    turns:
      - tools:
          - {id: report, name: mcp__harness__evaluation_report, input: {}}
      - tools:
          - id: record
            name: mcp__harness__record_result
            input: {claims: {accuracy: "${report.claim}"}, summary: As recomputed., shortfalls: []}
      - text: Recorded.
"""
_BYPASSING = f"""\
  - role: model-builder
    experiment: 1
    attempt: 1
    turns:
      - text: A quick try without the harness's logger.
        tools:
          - id: open
            name: mcp__harness__open_experiment
            input: {{hypothesis: A constant is enough, rationale: It is quick.}}
      - tools:
{LOOK}{CONFIGURE.replace("MODEL", "constant")}\
{RUN.replace("start_run, input: {}", 'start_run, input: {command: "python constant.py"}')}\
      - text: It reached 0.99.
  - role: oracle
    experiment: 1
    attempt: 1
    turns:
      - tools:
          - id: record
            name: mcp__harness__record_result
            input: {{claims: {{accuracy: "0.99"}}, summary: The constant reached 0.99., shortfalls: []}}
      - text: Recorded.
"""
SCENARIO = f"""\
sessions:
{_BYPASSING}\
  - role: model-builder
    experiment: 2
    attempt: 1
    turns:
      - text: Now with the run logger.
        expect: "The run logger was bypassed"
        tools:
{OPEN}      - tools:
{LOOK}{HONEST}      - text: It is trained.
{ORACLE.replace("NUMBER", "2")}"""
"""Two experiments: the first bypasses the run logger, the second is honest and reaches the
target."""

CONSTANT = """\
import json
import time

time.sleep(0.5)
json.dump({"accuracy": 0.99}, open("results.json", "w"))
print("SUCCESS")
"""
