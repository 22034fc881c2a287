"""PyTorch Lightning with several processes. The loss is that of the whole minibatch, as with one process.

python examples/lightning_loop.py --devices 2
"""

import argparse

import pytorch_lightning as lightning
import torch
from digits import LAW, PRIOR, read
from torch import distributed, nn

from mdpu.losses import TupleLoss
from mdpu.monitoring import watch
from mdpu.streaming import TupleDataset


class FromTuples(lightning.LightningModule):
    """A perceptron that learns from tuples."""

    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Flatten(), nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 1), nn.Flatten(0))
        self.images, self.labels, self.train_data, self.held = read()

    def setup(self, stage):
        group = distributed.group.WORLD if distributed.is_initialized() else None
        self.loss = TupleLoss(LAW, PRIOR, process_group=group)  # the sum over the processes

    def train_dataloader(self):
        return TupleDataset(self.images, self.train_data).loader(batch_size=64)  # this process's part of it

    def training_step(self, batch, place):
        return self.loss(*batch.split(self.network(batch.instances)))

    def on_train_epoch_end(self):
        with torch.no_grad():
            scores = self.network(torch.from_numpy(self.images).to(self.device)).cpu()
        for name, value in watch(LAW, PRIOR, scores[self.held.tuples], scores[self.held.unlabeled]).items():
            self.log(name, value, sync_dist=True)
        self.accuracy = ((scores[1200:] > 0) == torch.from_numpy(self.labels[1200:] > 0)).float().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3, weight_decay=5e-4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--devices", type=int, default=2)
    arguments = parser.parse_args()
    lightning.seed_everything(0, verbose=False)
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    options = {"accelerator": "cpu", "strategy": "ddp", "use_distributed_sampler": False}
    trainer = lightning.Trainer(max_epochs=arguments.epochs, devices=arguments.devices, **options, **quiet)
    trainer.fit(module := FromTuples())
    if trainer.is_global_zero:
        print(*(f"{name} {value:.3f}" for name, value in trainer.callback_metrics.items()))
        print(f"accuracy {module.accuracy:.3f}")
