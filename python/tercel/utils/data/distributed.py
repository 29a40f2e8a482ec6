"""A sampler for training in several processes."""

import math
from typing import Any, Iterator, Optional

import tercel
from tercel.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """The part of a dataset's indices that one of num_replicas processes reads.

    Process `rank` takes every num_replicas-th index. All take equally many: the first indices are repeated at the end, or
    with drop_last the last ones left out. shuffle permutes by seed plus epoch: call set_epoch() before each epoch.
    num_replicas and rank are those of the process group by default; ValueError if there is none, or rank is not in
    [0, num_replicas).
    """

    def __init__(self, dataset: Any, num_replicas: Optional[int] = None, rank: Optional[int] = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False) -> None:
        if num_replicas is None or rank is None:
            from tercel import distributed
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        if self.shuffle:
            generator = tercel.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = tercel.randperm(size, generator=generator).tolist()
        else:
            indices = list(range(size))
        if indices and len(indices) < self.total_size:
            indices *= math.ceil(self.total_size / len(indices))
        indices = indices[:self.total_size]
        if len(indices) != self.total_size:
            raise AssertionError(f"Number of indices ({len(indices)}) does not match total_size ({self.total_size})")
        return iter(indices[self.rank::self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the epoch, from which the next iteration's order follows."""
        self.epoch = epoch
