"""Learners for small samples: the joint law of a tuple as an objective for linear models, trees and
any classifier.
"""
