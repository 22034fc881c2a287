"""Learning from M-tuple dominant positive and unlabeled data: method, experiments, report."""

__version__ = "0.3.0"
