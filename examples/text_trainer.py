"""A text classifier by Hugging Face's `Trainer`: a tuple is a review's sentences, at least half of them in its favour.

python examples/text_trainer.py
"""

import argparse

import numpy as np
import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from mdpu.data import draw_split
from mdpu.law import Law
from mdpu.losses import TupleLoss
from mdpu.monitoring import watch
from mdpu.streaming import TupleBatch, TupleDataset, TupleSampler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=12)
epochs = parser.parse_args().epochs
LAW, PRIOR = Law.dominant(3), 0.4
# Sentences of eight words, two in five of them from the class's own twenty. A real model has a tokenizer:
# AutoTokenizer.from_pretrained("distilbert-base-uncased")(sentences, padding=True, return_tensors="pt")
draws = np.random.default_rng(0)
labels = np.where(draws.random(3000) < PRIOR, 1, -1).astype(np.int8)
first = np.where(draws.random((3000, 8)) < 0.4, np.where(labels > 0, 1, 21)[:, None], 41)
sentences = torch.from_numpy(first + draws.integers(20, size=(3000, 8)))
source = [{"input_ids": row, "attention_mask": torch.ones(8)} for row in sentences]
train, held = (
    draw_split(labels * part, LAW, PRIOR, 500, 1500, 0)
    for part in (np.arange(3000) < 1500, np.arange(3000) // 750 == 2)
)


class TupleTrainer(Trainer):
    """A `Trainer` whose minibatches hold tuples and unlabeled sentences."""

    loss = TupleLoss(LAW, PRIOR)

    def get_train_dataloader(self):
        sampler = TupleSampler(len(self.train_dataset), 32)
        return DataLoader(
            self.train_dataset, batch_sampler=sampler, collate_fn=lambda b: b.instances | {"sizes": b.sizes}
        )

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        sizes = inputs.pop("sizes")
        return self.loss(*TupleBatch(None, sizes).split(model(**inputs).logits.squeeze(1)))


sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
config = BertConfig(vocab_size=61, num_labels=1, **sizes)
torch.manual_seed(0)
# A real one: AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased", num_labels=1)
model = BertForSequenceClassification(config)
options = {"report_to": "none", "save_strategy": "no", "logging_strategy": "no", "disable_tqdm": True, "use_cpu": True}
arguments = TrainingArguments(output_dir="text_trainer", num_train_epochs=epochs, learning_rate=3e-3, **options)
TupleTrainer(model=model, args=arguments, train_dataset=TupleDataset(source, train)).train()

model.eval()
with torch.no_grad():
    scores = model(sentences).logits.squeeze(1)
seen = watch(LAW, PRIOR, scores[held.tuples], scores[held.unlabeled])
print(*(f"{name} {value:.3f}" for name, value in seen.items()))
print(f"accuracy {((scores[2250:] > 0) == torch.from_numpy(labels[2250:] > 0)).float().mean():.3f}")
