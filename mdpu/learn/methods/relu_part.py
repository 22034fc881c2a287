"""ReLU correction of the tuple part and the unlabeled part, as the proof of Theorem 3 applies f."""

from mdpu.learn.method import CorrectedRisk

METHOD = CorrectedRisk("ReLU (part)", k=0.0, scope="part")
