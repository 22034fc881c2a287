"""PyTorch Lightning with several processes. The loss is that of the whole minibatch, as with one process.

python examples/lightning_loop.py --devices 2
"""

import argparse

import pytorch_lightning as lightning
import torch
from digits import LAW, PRIOR, read
from torch import distributed, nn
from torch.utils.data import DataLoader
from watching import watch

from mdpu.loading import TupleDataset, collate
from mdpu.losses import TupleLoss


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
        dataset, size = TupleDataset(self.images, self.train_data), 64 // self.trainer.world_size
        return DataLoader(dataset, size, shuffle=True, collate_fn=collate)  # Lightning brings the sampler

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
    options = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    options |= {"accelerator": "cpu", "strategy": "ddp", "max_epochs": arguments.epochs, "devices": arguments.devices}
    (trainer := lightning.Trainer(**options)).fit(module := FromTuples())
    if trainer.is_global_zero:
        seen = (f"{name} {value:.3f}" for name, value in trainer.callback_metrics.items())
        print(*seen, f"accuracy {module.accuracy:.3f}")
