"""The forms of trajectories that are read: one file a form, one table."""
