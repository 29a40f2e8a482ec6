"""Samplers: iterables of indices, or of batches of indices."""

import itertools
from typing import Any, Generic, Iterable, Iterator, List, Optional, Sequence, Sized, TypeVar, Union

import tercel
from tercel import Generator

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler"]

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Indices, or batches of indices, in the order in which a loader reads them. Subclasses define __iter__().

    len(loader) needs __len__(), which has no default.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class SequentialSampler(Sampler[int]):
    """0, 1, 2 ... up to the length of the data source."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order: permutations, or with replacement independent draws.

    num_samples: how many; None is the length of the data source. Without a generator each iteration seeds a new one from
    the default generator. TypeError if replacement is no bool, ValueError if num_samples is not positive.
    """

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: Optional[int] = None,
                 generator: Optional[Generator] = None) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """How many indices an iteration has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, count = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = tercel.Generator()
            generator.manual_seed(int(tercel.empty((), dtype=tercel.int64).random_().item()))
        if self.replacement:
            for begin in range(0, count, 32):  # drawn on demand: count may be far more than anyone takes
                yield from tercel.randint(high=size, size=(min(32, count - begin),), generator=generator).tolist()
        elif size == 0:
            raise ValueError(f"num_samples={count} of an empty data source")
        else:
            for begin in range(0, count, size):
                yield from tercel.randperm(size, generator=generator).tolist()[:count - begin]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Optional[Generator] = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in tercel.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """num_samples indices of [0, len(weights)), drawn with probabilities in proportion to the weights.

    ValueError if num_samples is not a positive integer, replacement no bool, or weights have more than one dimension.
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True,
                 generator: Optional[Generator] = None) -> None:
        if not _is_count(num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = tercel.as_tensor(weights, dtype=tercel.float64)
        if self.weights.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from tercel.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[List[int]]):
    """Lists of batch_size indices of a sampler; drop_last leaves out a last list that is shorter.

    ValueError if batch_size is not a positive integer or drop_last no bool.
    """

    def __init__(self, sampler: Union[Sampler[int], Iterable[int]], batch_size: int, drop_last: bool) -> None:
        if not _is_count(batch_size):
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[List[int]]:
        indices = iter(self.sampler)
        while True:
            batch = list(itertools.islice(indices, self.batch_size))
            if not batch or (self.drop_last and len(batch) < self.batch_size):
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else (count + self.batch_size - 1) // self.batch_size
