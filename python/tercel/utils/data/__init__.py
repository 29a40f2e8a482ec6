"""Datasets, samplers and DataLoader, as PyTorch programs use them.

    from tercel.utils.data import DataLoader, TensorDataset
    for x, y in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, num_workers=2):
        step(x, y)
"""

from tercel.utils.data._utils.worker import WorkerInfo, get_worker_info
from tercel.utils.data.dataloader import DataLoader, default_collate, default_convert
from tercel.utils.data.dataset import (ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset,
                                       TensorDataset, random_split)
from tercel.utils.data.distributed import DistributedSampler
from tercel.utils.data.sampler import (BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
                                       WeightedRandomSampler)

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
           "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
           "WeightedRandomSampler", "WorkerInfo", "default_collate", "default_convert", "get_worker_info", "random_split"]
