"""Names of the environment variables that the harness gives to training and predict commands."""

PROJECT = "HARNESS_PROJECT"  # absolute path of the project's root
EXPERIMENT = "HARNESS_EXPERIMENT"  # exp-0001
RUN = "HARNESS_RUN"  # run-01
RUN_DIR = "HARNESS_RUN_DIR"  # absolute; the run logger writes here and nowhere else
TOKEN = "HARNESS_RUN_TOKEN"  # link token; the ledger knows its hash
SEED = "HARNESS_SEED"  # the run's seed, chosen by the harness
ATTEMPT = "HARNESS_ATTEMPT"  # 1 for the first run of this seed
CHECKPOINT_EVERY = "HARNESS_CHECKPOINT_EVERY"  # epochs, from the plan
METRIC = "HARNESS_METRIC"  # the plan's oracle.metric
CONFIG = "HARNESS_CONFIG"  # the values of config.yaml, as JSON
DIRECTION = "HARNESS_DIRECTION"  # maximize or minimize, from the plan
TRAIN = "HARNESS_TRAIN"  # the table to train on, absolute
VALIDATION = "HARNESS_VALIDATION"  # the validation table, absolute; not set when it is hidden
SPENT_SECONDS = "HARNESS_SPENT_SECONDS"  # trainers: what earlier attempts of the run took
SHARD = "HARNESS_SHARD"  # trainers of several processes: 1, each holds a part of the base weights
SPENT_TOKENS = "HARNESS_SPENT_TOKENS"  # trainers: what earlier attempts put through the model

UNREGISTERED = "harness-runs"  # no variable: the folder of runs outside `harness train`

CHECKPOINT = "HARNESS_CHECKPOINT"  # predict: the checkpoint to load, absolute
INPUTS = "HARNESS_INPUTS"  # predict: rows without labels, absolute
PREDICTIONS = "HARNESS_PREDICTIONS"  # predict: where to write csv or npz, absolute

REPLICA = "HARNESS_REPLICA"  # several replicas: which one this process is, from 0
REPLICAS = "HARNESS_REPLICAS"  # how many there are
REPLICA_ROUND = "HARNESS_REPLICA_ROUND"  # the kept round to go on from; not set: start anew
LIGHTHOUSE = "TORCHFT_LIGHTHOUSE"  # torchft's own name: http://host:port
