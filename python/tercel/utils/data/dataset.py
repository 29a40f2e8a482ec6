"""Datasets: by index (Dataset) or as a stream (IterableDataset), and datasets made of others."""

import bisect
import itertools
import math
import warnings
from typing import Any, Dict, Generic, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

import tercel
from tercel import Generator, Tensor

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
           "random_split"]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Dataset(Generic[T_co]):
    """Samples by index. Subclasses define __getitem__(index) and, for the default samplers, __len__().

    A subclass may define __getitems__(indices), a list of the samples of a batch. a + b is their concatenation.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: "Dataset[T_co]") -> "ConcatDataset[T_co]":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Samples as a stream. Subclasses define __iter__(); a + b is one after the other.

    Every worker process iterates over its own copy: __iter__() asks get_worker_info() for its part, or samples repeat.
    """

    def __add__(self, other: "Dataset[T_co]") -> "ChainDataset":  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[Tuple[Tensor, ...]]):
    """Samples are tuples of the tensors' rows. AssertionError if the tensors differ in their first size."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors: Tuple[Tensor, ...] = tensors

    def __getitem__(self, index: Any) -> Tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Samples are tuples, or with keywords dicts, of the datasets' samples.

    ValueError without datasets, for both kinds of arguments, and for datasets of different lengths.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, "
                             "but both types are given.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Union[Tuple[Any, ...], Dict[str, Any]] = args or kwargs
        lengths = {len(dataset) for dataset in self._parts()}
        if len(lengths) != 1:
            raise ValueError("Size mismatch between datasets")
        self._length: int = lengths.pop()

    def _parts(self) -> List[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _sample(self, parts: Iterable[Any]) -> Any:
        return dict(zip(self.datasets, parts)) if isinstance(self.datasets, dict) else tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._sample([dataset[index] for dataset in self._parts()])

    def __getitems__(self, indices: List[Any]) -> List[Any]:
        columns = []
        for dataset in self._parts():
            items = _samples_of(dataset, indices)
            if len(items) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
            columns.append(items)
        return [self._sample(parts) for parts in zip(*columns)]

    def __len__(self) -> int:
        return self._length


def _samples_of(dataset: Any, indices: List[Any]) -> Any:
    """The samples of a dataset by these indices, in one call where it has __getitems__."""
    many = getattr(dataset, "__getitems__", None)
    return many(indices) if callable(many) else [dataset[index] for index in indices]


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other. AssertionError if there is none, or one is an IterableDataset."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets: List[Any] = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes: List[int] = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> List[int]:
        """The lengths up to and including each dataset."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    @property
    def cummulative_sizes(self) -> List[int]:
        """The older name of cumulative_sizes; warns."""
        warnings.warn("cummulative_sizes attribute is renamed to cumulative_sizes", DeprecationWarning, stacklevel=2)
        return self.cumulative_sizes

    def __getitem__(self, idx: Any) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        number = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[number][idx - (self.cumulative_sizes[number - 1] if number else 0)]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other. AssertionError, while it is read, for a dataset that is no IterableDataset."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        super().__init__()
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for stream in self._streams():
            yield from stream

    def __len__(self) -> int:
        return sum(len(stream) for stream in self._streams())


class Subset(Dataset[T_co]):
    """The samples of a dataset by the given indices.

    NotImplementedError for a subclass that defines __getitem__ without __getitems__, which loaders call for a batch.
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{own.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__ to ensure DataLoader works correctly with your custom "
                "logic. A simple implementation:\n\ndef __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]")

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: List[Any]) -> List[T_co]:
        return _samples_of(self.dataset, [self.indices[idx] for idx in indices])  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self.indices)


def _lengths_of_fractions(fractions: Sequence[float], total: int) -> List[int]:
    lengths = []
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths.append(math.floor(total * fraction))
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3)
    return lengths


def random_split(dataset: Dataset[T], lengths: Sequence[Union[int, float]],
                 generator: Optional[Generator] = tercel.default_generator) -> List[Subset[T]]:
    """Splits a dataset at random into parts of the given lengths, or of fractions that sum to 1.

    What fractions leave over goes to the first parts, one sample each. ValueError if the lengths do not sum to the
    dataset's, or a fraction is not between 0 and 1.
    """
    size = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_of_fractions(lengths, size)
    if sum(lengths) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = tercel.randperm(size, generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, indices[end - length:end]) for end, length in zip(ends, lengths)]
