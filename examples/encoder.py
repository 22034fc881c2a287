"""Text by an encoder of Hugging Face through the classifier: are sentences of Python's reference on strings?

python examples/encoder.py
"""

import re
from pydoc_data.topics import topics
from zlib import crc32

import numpy as np
import torch
from torch import nn
from transformers import BertConfig, BertModel

from mdpu.data import draw_split
from mdpu.estimator import MDPUClassifier, Network

SIDES = ({"strings", "string-methods", "formatstrings"}, {"debugger", "import", "typesmapping"})
WORDS, LENGTH = 2000, 32


def tokens(sentence):
    """Return the ids (LENGTH,) of words, hashed, with 0 after the last one."""
    # With real weights: AutoTokenizer.from_pretrained(name)(sentences, padding=True, return_tensors="np")["input_ids"]
    ids = [1 + crc32(word.encode()) % WORDS for word in re.findall(r"\w+", sentence.lower())][:LENGTH]
    return ids + [0] * (LENGTH - len(ids))


class Encoder(nn.Module):
    """Ids of tokens (N, LENGTH), which come as float32, through an encoder, and a head on the mean of the words."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(encoder.config.hidden_size, 1)

    def forward(self, x):
        words = x > 0
        states = self.encoder(input_ids=x.long(), attention_mask=words.long()).last_hidden_state
        return self.head((states * words[..., None]).sum(1) / words.sum(1, keepdim=True))


sides = {}  # by sentence, of those that are on one side alone
for topic, text in topics.items():
    for sentence in re.split(r"(?<=[.:])\s+", " ".join(text.split())):
        if 6 <= len(sentence.split()) <= 40:
            sides.setdefault(sentence, set()).update(side for side in (0, 1) if topic in SIDES[side])
kept = [(tokens(sentence), 1 - 2 * min(own)) for sentence, own in sides.items() if len(own) == 1]
rows, labels = (np.array(part)[np.random.default_rng(0).permutation(len(kept))] for part in zip(*kept, strict=True))
train = np.arange(len(rows)) < 0.7 * len(rows)
split = draw_split((labels * train).astype(np.int8), 3, prior=0.4, n=300, n_unlabeled=400, trial=0)

sizes = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 128}
torch.manual_seed(0)
torch.set_num_threads(1)
# A real encoder: AutoModel.from_pretrained("distilbert-base-uncased"), with rates={"encoder": 0.01} in the network
encoder = Encoder(BertModel(BertConfig(vocab_size=WORDS + 1, **sizes), add_pooling_layer=False))
network = Network(network=encoder, standardize=False, n_epochs=4, batch_size=20, learning_rate=3e-3)
classifier = MDPUClassifier(0.4, learner=network, compare_prior=False, random_state=0).fit(rows, split)
print(f"accuracy {(classifier.predict(rows[~train]) == labels[~train]).mean():.3f}")
