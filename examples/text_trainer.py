"""A text classifier by Hugging Face's `Trainer`.

A tuple is a review's sentences, at least half of them in its favour.

python examples/text_trainer.py
"""

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from watching import watch

from mdpu.data import draw_split
from mdpu.law import Law
from mdpu.loading import TupleBatch, TupleDataset, collate
from mdpu.losses import TupleLoss

LAW = Law.dominant(3)
PRIOR = 0.4
TEST = slice(2250, None)  # the sentences before are to learn from, and from 1,500 on to watch


def draw_sentences():
    """Return sentences (3000, 8) of words, two in five from the class's own twenty, and labels."""
    # A real model has a tokenizer: AutoTokenizer.from_pretrained("distilbert-base-uncased")(
    #     sentences, padding=True, return_tensors="pt")
    draws = np.random.default_rng(0)
    is_positive = draws.random(3000) < PRIOR
    of_class = draws.random((3000, 8)) < 0.4
    first_of_class = np.where(is_positive, 1, 21)
    words = np.where(of_class, first_of_class[:, None], 41)
    words += draws.integers(20, size=words.shape)
    labels = np.where(is_positive, 1, -1)
    return torch.from_numpy(words), labels.astype(np.int8)


def as_mapping(items):
    """Return a minibatch as a mapping, which `Trainer` moves to the device."""
    batch = collate(items)
    return batch.instances | {"sizes": batch.sizes}


class TupleTrainer(Trainer):
    """A `Trainer` whose minibatches hold tuples and unlabeled sentences."""

    loss = TupleLoss(LAW, PRIOR)

    def compute_loss(self, model, inputs, **options):
        sizes = inputs.pop("sizes")
        scores = model(**inputs).logits.squeeze(1)
        tuples, unlabeled = TupleBatch(None, sizes).split(scores)
        return self.loss(tuples, unlabeled)


sentences, labels = draw_sentences()
to_learn = labels.copy()
to_learn[1500:] = 0  # left out
to_watch = labels.copy()
to_watch[:1500] = 0
to_watch[TEST] = 0
train = draw_split(to_learn, LAW, PRIOR, 500, 1500, 0)
held_out = draw_split(to_watch, LAW, PRIOR, 500, 1500, 0)

torch.manual_seed(0)
# A real model: AutoModelForSequenceClassification.from_pretrained(
#     "distilbert-base-uncased", num_labels=1)
config = BertConfig(
    vocab_size=61,
    num_labels=1,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=64,
)
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    "trained",
    num_train_epochs=12,
    learning_rate=3e-3,
    per_device_train_batch_size=32,
    remove_unused_columns=False,
    use_cpu=True,
    report_to="none",
    save_strategy="no",
    logging_strategy="no",
    disable_tqdm=True,
)
source = [{"input_ids": sentence, "attention_mask": torch.ones(8)} for sentence in sentences]
trainer = TupleTrainer(
    model=model,
    args=arguments,
    train_dataset=TupleDataset(source, train),
    data_collator=as_mapping,
)
trainer.train()

with torch.no_grad():
    scores = model.eval()(sentences).logits.squeeze(1)
measures = watch(LAW, PRIOR, scores[held_out.tuples], scores[held_out.unlabeled])
for name, value in measures.items():
    print(name, f"{value:.3f}")
answers = scores[TEST].numpy() > 0
print(f"accuracy {(answers == (labels[TEST] > 0)).mean():.3f}")
