"""Non-negative PU learning (Kiryo et al., 2017) that treats every tuple member as a positive.

This is the naive use of the paper's data: pi_+ mean_T l(g, +1) + max(0, mean_U l(g, -1) - pi_+ mean_T l(g, -1)),
the class-wise ReLU correction with the weights of tuple size 1. A share b of the members is negative (Lemma 6),
so the estimate is biased; MDPU's weights remove that bias. Where the negative part falls below zero, Kiryo et al.
ascend its gradient (their Algorithm 1). Here its gradient is zero there, as in their Eq. 6 and in
`relu-class`, so that the two methods differ only in their weights.
"""

from mdpu.learn.method import CorrectedRisk

METHOD = CorrectedRisk("nnPU", k=0.0, scope="class", tuple_size=1, origin="literature")
