"""Text by an encoder of Hugging Face through the classifier.

Are sentences of Python's reference on strings?

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

POSITIVE = {"strings", "string-methods", "formatstrings"}
NEGATIVE = {"debugger", "import", "typesmapping"}
WORDS = 2000
LENGTH = 32


def read_sentences():
    """Return the sentences of the topics and their labels, but for those that are on both sides."""
    sides = {}
    for topic, text in topics.items():
        for sentence in re.split(r"(?<=[.:])\s+", " ".join(text.split())):
            if 6 <= len(sentence.split()) <= 40:
                of_sentence = sides.setdefault(sentence, set())
                if topic in POSITIVE:
                    of_sentence.add(1)
                elif topic in NEGATIVE:
                    of_sentence.add(-1)
    kept = {sentence: labels for sentence, labels in sides.items() if len(labels) == 1}
    return list(kept), [min(labels) for labels in kept.values()]


def tokens(sentence):
    """Return the ids (LENGTH,) of words, hashed, with 0 after the last one."""
    # With real weights: AutoTokenizer.from_pretrained(name)(
    #     sentences, padding=True, return_tensors="np")["input_ids"]
    words = re.findall(r"\w+", sentence.lower())[:LENGTH]
    ids = [1 + crc32(word.encode()) % WORDS for word in words]
    return ids + [0] * (LENGTH - len(ids))


class Encoder(nn.Module):
    """Ids of tokens (N, LENGTH), which come as float32, through an encoder and a head.

    The head sees the mean of the words.
    """

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.config.hidden_size, 1)

    def forward(self, x):
        is_word = x > 0
        output = self.encoder(input_ids=x.long(), attention_mask=is_word.long())
        states = output.last_hidden_state * is_word[..., None]  # (N, LENGTH, hidden)
        return self.head(states.sum(1) / is_word.sum(1, keepdim=True))


sentences, labels = read_sentences()
order = np.random.default_rng(0).permutation(len(sentences))
rows = np.array([tokens(sentence) for sentence in sentences])[order]
labels = np.array(labels)[order]
is_train = np.arange(len(rows)) < 0.7 * len(rows)
to_learn = (labels * is_train).astype(np.int8)
split = draw_split(to_learn, 3, prior=0.4, n=300, n_unlabeled=400, trial=0)

torch.manual_seed(0)
torch.set_num_threads(1)
# A real encoder: AutoModel.from_pretrained("distilbert-base-uncased"), with rates={"encoder": 0.01}
# in the network.
config = BertConfig(
    vocab_size=WORDS + 1,
    hidden_size=64,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=128,
)
network = Network(
    network=Encoder(BertModel(config, add_pooling_layer=False)),
    standardize=False,
    n_epochs=4,
    batch_size=20,
    learning_rate=3e-3,
)
classifier = MDPUClassifier(0.4, learner=network, compare_prior=False, random_state=0)
classifier.fit(rows, split)

answers = classifier.predict(rows[~is_train])
print(f"accuracy {(answers == labels[~is_train]).mean():.3f}")
