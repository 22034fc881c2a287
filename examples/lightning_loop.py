"""PyTorch Lightning with several processes.

The loss is that of the whole minibatch, as with one process.

python examples/lightning_loop.py --devices 2
"""

import argparse

import pytorch_lightning as lightning
import torch
from digits import LAW, PRIOR, accuracy_of, perceptron, read
from torch import distributed
from torch.utils.data import DataLoader
from watching import watch

from mdpu.loading import TupleDataset, collate
from mdpu.losses import TupleLoss


class FromTuples(lightning.LightningModule):
    """A perceptron that learns from tuples."""

    def __init__(self):
        super().__init__()
        self.network = perceptron()
        self.images, self.labels, self.train_data, self.held_out = read()

    def setup(self, stage):
        group = distributed.group.WORLD if distributed.is_initialized() else None
        self.loss = TupleLoss(LAW, PRIOR, process_group=group)  # the sum over the processes

    def train_dataloader(self):
        dataset = TupleDataset(self.images, self.train_data)
        size = 64 // self.trainer.world_size  # Lightning brings the sampler
        return DataLoader(dataset, size, shuffle=True, collate_fn=collate)

    def training_step(self, batch, place):
        tuples, unlabeled = batch.split(self.network(batch.instances))
        return self.loss(tuples, unlabeled)

    def on_train_epoch_end(self):
        images = torch.from_numpy(self.images).to(self.device)
        with torch.no_grad():
            scores = self.network(images).cpu()

        held_out = self.held_out
        measures = watch(LAW, PRIOR, scores[held_out.tuples], scores[held_out.unlabeled])
        for name, value in measures.items():
            self.log(name, value, sync_dist=True)
        self.accuracy = accuracy_of(scores, self.labels)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3, weight_decay=5e-4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--devices", type=int, default=2)
    arguments = parser.parse_args()

    lightning.seed_everything(0, verbose=False)
    module = FromTuples()
    trainer = lightning.Trainer(
        accelerator="cpu",
        strategy="ddp",
        devices=arguments.devices,
        max_epochs=arguments.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module)

    if trainer.is_global_zero:
        measures = trainer.callback_metrics.items()
        seen = (f"{name} {value:.3f}" for name, value in measures)
        print(*seen, f"accuracy {module.accuracy:.3f}")
