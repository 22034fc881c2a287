"""Non-negative PU learning (Kiryo et al., 2017) that takes every tuple member for a positive.

The naive use of the paper's data: pi_+ mean_T l(g, +1) + max(0, mean_U l(g, -1) - pi_+ mean_T l(g, -1)),
which is the class-wise ReLU correction with the weights of tuple size 1. A share b of the members is
negative (Lemma 6), so the estimate is biased; MDPU's weights are what removes that bias. Kiryo et al.
step up the gradient of the negative part where it falls below zero (their Algorithm 1); here its
gradient is zero there, as their Eq. 6 has it and as `relu-class` does, so that the two differ in their
weights alone.
"""

from mdpu.learn.method import CorrectedRisk

METHOD = CorrectedRisk("nnPU", k=0.0, scope="class", tuple_size=1)
