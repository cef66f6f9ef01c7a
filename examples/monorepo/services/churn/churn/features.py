"""What training and predict share: the table's columns as numbers."""

import csv

import numpy as np

NUMBERS = ("days_since", "visits", "spent")


def read(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def inputs(rows):
    x = np.array([[float(row[name]) for name in NUMBERS] for row in rows])
    return np.column_stack([(x - (20, 15, 40)) / (20, 9, 12), np.ones(len(rows))])
