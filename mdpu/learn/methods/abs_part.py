"""ABS correction of the tuple part and the unlabeled part, as the proof of Theorem 3 applies f."""

from mdpu.learn.method import CorrectedRisk

METHOD = CorrectedRisk("ABS (part)", k=1.0, scope="part")
