"""A text classifier by Hugging Face's `Trainer`: a tuple is a review's sentences, at least half of them in its favour.

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

LAW, PRIOR = Law.dominant(3), 0.4
# Sentences of eight words, two in five of them from the class's own twenty. A real model has a tokenizer:
# AutoTokenizer.from_pretrained("distilbert-base-uncased")(sentences, padding=True, return_tensors="pt")
draws = np.random.default_rng(0)
labels = np.where(draws.random(3000) < PRIOR, 1, -1).astype(np.int8)
first = np.where(draws.random((3000, 8)) < 0.4, np.where(labels > 0, 1, 21)[:, None], 41)
sentences = torch.from_numpy(first + draws.integers(20, size=(3000, 8)))
source = [{"input_ids": row, "attention_mask": torch.ones(8)} for row in sentences]
parts = np.arange(3000) < 1500, np.arange(3000) // 750 == 2  # to learn from, to watch; the others test
train, held = (draw_split(labels * part, LAW, PRIOR, 500, 1500, 0) for part in parts)


def as_mapping(items):  # which `Trainer` moves to the device
    batch = collate(items)
    return batch.instances | {"sizes": batch.sizes}


class TupleTrainer(Trainer):
    """A `Trainer` whose minibatches hold tuples and unlabeled sentences."""

    loss = TupleLoss(LAW, PRIOR)

    def compute_loss(self, model, inputs, **options):
        sizes = inputs.pop("sizes")
        return self.loss(*TupleBatch(None, sizes).split(model(**inputs).logits.squeeze(1)))


sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
torch.manual_seed(0)
# A real one: AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased", num_labels=1)
model = BertForSequenceClassification(BertConfig(vocab_size=61, num_labels=1, **sizes))
quiet = {"report_to": "none", "save_strategy": "no", "logging_strategy": "no", "disable_tqdm": True}
quiet |= {"remove_unused_columns": False, "per_device_train_batch_size": 32}
arguments = TrainingArguments("trained", num_train_epochs=12, learning_rate=3e-3, use_cpu=True, **quiet)
TupleTrainer(model=model, args=arguments, train_dataset=TupleDataset(source, train), data_collator=as_mapping).train()

with torch.no_grad():
    scores = model.eval()(sentences).logits.squeeze(1)
for name, value in watch(LAW, PRIOR, scores[held.tuples], scores[held.unlabeled]).items():
    print(name, f"{value:.3f}")
print(f"accuracy {((scores[2250:] > 0) == torch.from_numpy(labels[2250:] > 0)).float().mean():.3f}")
