"""Training programs: specification, trainer process, validation, lineage, evaluation, promotion,
serving."""
