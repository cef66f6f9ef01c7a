"""How strong is a beam? A Lightning module with the harness's callback."""

import os

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from torch.utils.data import DataLoader, TensorDataset

from beam import network, read

EPOCHS, RATE = 40, 0.01


class Beam(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = network()

    def forward(self, x):
        return self.net(x)[:, 0]

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self(x), y)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=RATE)


def main():
    from harness.run_logger import RunLogger
    from harness.training.lightning_callback import LightningCallback

    _, x, strengths = read(os.environ.get("HARNESS_TRAIN", "data/beams.train.csv"))
    with RunLogger.from_environment() as log:
        seed_everything(log.seed % 2**32)
        loader = DataLoader(TensorDataset(x, torch.tensor(strengths)), batch_size=64, shuffle=True)
        model = Beam()
        trainer = Trainer(
            max_epochs=EPOCHS,
            default_root_dir=log.checkpoint_dir,
            callbacks=[LightningCallback(log)],
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(model, loader)
        path = log.checkpoint_dir / "beam.pt"
        torch.save(model.net.state_dict(), path)
        log.checkpoint_saved(path, epoch=EPOCHS - 1, final=True)


if __name__ == "__main__":
    main()
