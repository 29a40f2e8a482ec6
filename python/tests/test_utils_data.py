"""tercel.utils.data without worker processes: datasets, samplers, collating, arguments of DataLoader."""

import collections
import itertools
import warnings
from collections import Counter

import numpy as np
import pytest

import tercel as tc
from tercel.utils import data as tud
from tercel.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, default_collate, default_convert

Point = collections.namedtuple("Point", "x y")


class Numbers(Dataset):
    def __init__(self, size):
        self.size = size

    def __getitem__(self, i):
        if not 0 <= i < self.size:
            raise IndexError(i)
        return i

    def __len__(self):
        return self.size


class Stream(IterableDataset):
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


class Measured(Stream):
    def __len__(self):
        return 2


def batches(*args, **kwargs):
    return [batch.tolist() for batch in DataLoader(*args, **kwargs)]


def test_tensor_dataset():
    x, y = tc.arange(6.0).view(3, 2), tc.tensor([5, 6, 7])
    dataset = TensorDataset(x, y)
    assert len(dataset) == 3 and [t.tolist() for t in dataset[-1]] == [[4, 5], 7]
    assert [t.tolist() for t in dataset[1:]] == [[[2, 3], [4, 5]], [6, 7]]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(x, tc.ones(2))
    with pytest.raises(NotImplementedError, match="Subclasses of Dataset should implement __getitem__"):
        Dataset()[0]
    assert Dataset[int] is not None  # generic


def test_concatenation():
    both = Numbers(2) + Numbers(0) + Numbers(3)
    assert list(both) == [0, 1, 0, 1, 2] and both[-1] == 2 and both[-5] == 0 and len(both) == 5
    assert isinstance(both, tud.ConcatDataset) and both.cumulative_sizes == [2, 5]
    with pytest.warns(DeprecationWarning, match="renamed to cumulative_sizes"):
        assert both.cummulative_sizes == [2, 5]
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        both[-6]
    with pytest.raises(IndexError):
        both[5]
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        tud.ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        tud.ConcatDataset([Numbers(1), Stream()])


def test_chain():
    chain = Measured(1, 2) + Measured(3)
    assert isinstance(chain, tud.ChainDataset) and list(chain) == [1, 2, 3] and len(chain) == 4
    wrong = tud.ChainDataset([Stream(1), Numbers(1)])
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(wrong)
    with pytest.raises(TypeError):
        len(tud.ChainDataset([Stream(1)]))


class Many(Numbers):
    calls = 0

    def __getitems__(self, indices):
        Many.calls += 1
        return [self[i] for i in indices][:self.size - 1]


def test_stack():
    stack = tud.StackDataset(Numbers(3), TensorDataset(tc.ones(3)))
    assert stack[2] == (2, (tc.ones(()),)) and len(stack) == 3
    named = tud.StackDataset(a=Numbers(3), b=[4, 5, 6])
    assert named[1] == {"a": 1, "b": 5} and named.__getitems__([0, 2]) == [{"a": 0, "b": 4}, {"a": 2, "b": 6}]
    assert {k: v.tolist() for k, v in next(iter(DataLoader(named, batch_size=2))).items()} == {"a": [0, 1], "b": [4, 5]}
    many = tud.StackDataset(Many(4), Numbers(4))
    assert many.__getitems__([1, 0]) == [(1, 1), (0, 0)] and Many.calls == 1
    with pytest.raises(ValueError, match="output size mismatch. Expected 4, got 3"):
        many.__getitems__([0, 1, 2, 3])
    for args, kwargs, message in (((), {}, "At least one dataset"), ((Numbers(1),), {"a": Numbers(1)}, "Supported either"),
                                  ((Numbers(1), Numbers(2)), {}, "Size mismatch between datasets"),
                                  ((), {"a": Numbers(1), "b": Numbers(2)}, "Size mismatch between datasets")):
        with pytest.raises(ValueError, match=message):
            tud.StackDataset(*args, **kwargs)


def test_subset():
    subset = tud.Subset(Numbers(9), [8, 3, 5])
    assert list(subset) == [8, 3, 5] and len(subset) == 3 and subset[-1] == 5
    rows = tud.Subset(TensorDataset(tc.arange(9)), [8, 3, 5])
    assert rows[[0, 2]][0].tolist() == [8, 5] and rows[1:][0].tolist() == [3, 5]
    assert batches(subset, batch_size=2) == [[8, 3], [5]]

    class Half(tud.Subset):
        def __getitem__(self, i):
            return 0

    with pytest.raises(NotImplementedError, match="Half overrides __getitem__ but not __getitems__"):
        Half(Numbers(3), [0])


def test_random_split():
    parts = tud.random_split(range(10), [3, 7], tc.Generator().manual_seed(1))
    again = tud.random_split(range(10), [3, 7], generator=tc.Generator().manual_seed(1))
    assert [list(p) for p in parts] == [list(p) for p in again] and sorted(itertools.chain(*parts)) == list(range(10))
    assert [len(p) for p in tud.random_split(range(106), [0.1, 0.2, 0.3, 0.4])] == [11, 22, 31, 42]
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        assert [len(p) for p in tud.random_split(range(1), [0.5, 0.5])] == [1, 0]
    for lengths, message in (([1, 2], "Sum of input lengths does not equal"), ([0.1], "Sum of input lengths"),
                             ([1.5, -0.5], "Fraction at index 0 is not between 0 and 1")):
        with pytest.raises(ValueError, match=message):
            tud.random_split(range(10), lengths)
    state = tc.get_rng_state()
    tud.random_split(range(10), [10], generator=tc.Generator())
    assert tc.equal(state, tc.get_rng_state())


def test_samplers():
    assert list(tud.SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(tud.RandomSampler(range(50))) == list(range(50))
    assert len(list(tud.RandomSampler(range(4), num_samples=10))) == 10
    assert all(2 <= n <= 3 for n in Counter(tud.RandomSampler(range(4), num_samples=10)).values())
    drawn = list(tud.RandomSampler(range(4), replacement=True, num_samples=70))
    assert len(drawn) == 70 and set(drawn) == {0, 1, 2, 3}
    seeded = tud.RandomSampler(range(50), generator=tc.Generator().manual_seed(3))
    assert list(seeded) != list(seeded) and len(seeded) == 50
    tc.manual_seed(5)
    first = list(tud.RandomSampler(range(50)))
    tc.manual_seed(5)
    assert list(tud.RandomSampler(range(50))) == first
    assert sorted(tud.SubsetRandomSampler([7, 8, 9])) == [7, 8, 9] and len(tud.SubsetRandomSampler([7])) == 1
    weighted = tud.WeightedRandomSampler([0.0, 1.0, 3.0], 1000)
    counts = Counter(weighted)
    assert set(counts) == {1, 2} and 650 < counts[2] < 850 and len(weighted) == 1000
    assert sorted(tud.WeightedRandomSampler([1.0, 1.0], 2, replacement=False)) == [0, 1]
    assert list(tud.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(tud.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(tud.BatchSampler(range(5), 2, drop)) for drop in (False, True)] == [3, 2]
    with pytest.raises(NotImplementedError):
        iter(tud.Sampler())


@pytest.mark.parametrize("make, error, message", [
    (lambda: tud.RandomSampler(range(2), replacement=1), TypeError, "replacement should be a boolean value"),
    (lambda: tud.RandomSampler(range(2), num_samples=0), ValueError, "num_samples should be a positive integer value"),
    (lambda: tud.RandomSampler([]), ValueError, "but got num_samples=0"),
    (lambda: list(tud.RandomSampler([], num_samples=3)), ValueError, "num_samples=3 of an empty data source"),
    (lambda: tud.WeightedRandomSampler([1.0], True), ValueError, "num_samples should be a positive integer value"),
    (lambda: tud.WeightedRandomSampler([1.0], 1, "no"), ValueError, "replacement should be a boolean value"),
    (lambda: tud.WeightedRandomSampler([[1.0]], 1), ValueError, r"1d sequence but given weights have shape \(1, 1\)"),
    (lambda: tud.BatchSampler(range(2), True, False), ValueError, "batch_size should be a positive integer value"),
    (lambda: tud.BatchSampler(range(2), 2.0, False), ValueError, "batch_size should be a positive integer value"),
    (lambda: tud.BatchSampler(range(2), 2, 0), ValueError, "drop_last should be a boolean value"),
    (lambda: tud.DistributedSampler(range(2), 2, 2), ValueError, r"Invalid rank 2, rank should be in the interval \[0, 1\]"),
    (lambda: tud.DistributedSampler(range(2), 2, -1), ValueError, "Invalid rank -1"),
    (lambda: tud.DistributedSampler(range(2)), ValueError, "Default process group has not been initialized")])
def test_wrong_arguments_of_samplers(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("size, replicas, drop_last", [(10, 3, False), (10, 3, True), (2, 5, False), (2, 5, True), (9, 3, True)])
def test_distributed_sampler(size, replicas, drop_last):
    samplers = [tud.DistributedSampler(range(size), replicas, rank, drop_last=drop_last) for rank in range(replicas)]
    found = [list(sampler) for sampler in samplers]
    per_rank = size // replicas if drop_last else -(-size // replicas)
    assert {len(part) for part in found} == {per_rank} == {len(sampler) for sampler in samplers}
    counts = Counter(itertools.chain(*found))
    assert max(counts.values(), default=1) - min(counts.values(), default=1) <= 1
    assert len(counts) == min(size, per_rank * replicas)
    for sampler in samplers:
        sampler.set_epoch(1)
    assert size < 5 or [list(sampler) for sampler in samplers] != found
    ordered = tud.distributed.DistributedSampler(range(size), replicas, 0, shuffle=False, drop_last=drop_last)
    assert list(ordered) == list(range(size))[::replicas][:per_rank]


class Own(dict):
    pass


class OwnList(list):
    pass


class Frozen(collections.abc.Mapping):
    def __init__(self, items):
        self.items_ = dict(items)

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


class Stubborn(Frozen):
    def __init__(self, one, two):
        super().__init__({"a": one, "b": two})


def plain(x):
    """Nested tensors as lists, with dtypes."""
    if isinstance(x, tc.Tensor):
        return x.dtype, x.tolist()
    if isinstance(x, collections.abc.Mapping):
        return type(x), {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x), [plain(v) for v in x]
    return x


@pytest.mark.parametrize("samples, want", [
    ([tc.tensor([1, 2]), tc.tensor([3, 4])], (tc.int64, [[1, 2], [3, 4]])),
    ([1, 2], (tc.int64, [1, 2])), ([True, False], (tc.bool, [True, False])), ([1.5, 2], (tc.float64, [1.5, 2])),
    (["a", "b"], (list, ["a", "b"])), ([b"a", b"b"], (list, [b"a", b"b"])),
    ([np.ones(2, "f4"), np.zeros(2, "f4")], (tc.float32, [[1, 1], [0, 0]])),
    ([np.float32(1), np.float32(2)], (tc.float32, [1, 2])), ([np.int16(1), np.int16(2)], (tc.int16, [1, 2])),
    ([np.bool_(True)], (tc.bool, [True])), ([np.array(1.0), np.array(2.0)], (tc.float64, [1, 2])),
    ([(0, "a"), (1, "b")], (list, [(tc.int64, [0, 1]), (tuple, ["a", "b"])])),
    ([[0, 1], [2, 3]], (list, [(tc.int64, [0, 2]), (tc.int64, [1, 3])])),
    ([{"a": 0}, {"a": 1, "more": 2}], (dict, {"a": (tc.int64, [0, 1])})),
    ([Own(a=0), Own(a=1)], (Own, {"a": (tc.int64, [0, 1])})),
    ([Frozen({"a": 0}), Frozen({"a": 1})], (Frozen, {"a": (tc.int64, [0, 1])})),
    ([Stubborn(0, 1), Stubborn(2, 3)], (dict, {"a": (tc.int64, [0, 2]), "b": (tc.int64, [1, 3])})),
    ([Point(0, 1), Point(2, 3)], (Point, [(tc.int64, [0, 2]), (tc.int64, [1, 3])])),
    ([OwnList([0]), OwnList([1])], (OwnList, [(tc.int64, [0, 1])])),
    ([range(2), range(2)], (list, [(tc.int64, [0, 0]), (tc.int64, [1, 1])])),
    ([[], []], (list, [])), ([{}, {}], (dict, {}))], ids=str)
def test_default_collate(samples, want):
    got = plain(default_collate(samples))
    assert got == want and (not isinstance(got, tuple) or type(got[0]) is type(want[0]))


@pytest.mark.parametrize("samples, error, message", [
    ([tc.ones(2), tc.ones(3)], RuntimeError, r"stack expects each tensor to be equal size, but got \[2\] at entry 0 and \[3\]"),
    ([[1, 2], [3]], RuntimeError, "each element in list of batch should be of equal size"),
    ([None, None], TypeError, "must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneType'>"),
    ([object()], TypeError, "found <class 'object'>"), ([{1}], TypeError, "found <class 'set'>"),
    ([np.array(["a"])], TypeError, "found <U1"), ([np.array([None])], TypeError, "found object"),
    ([{"a": 0}, {"b": 0}], KeyError, "a"), ([1, "a"], (TypeError, ValueError), None), ([tc.ones(1), 1], TypeError, None),
    ([np.ones(2), np.ones(3)], RuntimeError, "stack expects each tensor to be equal size"), ([], IndexError, None)], ids=str)
def test_samples_that_make_no_batch(samples, error, message):
    with pytest.raises(error, match=message):
        default_collate(samples)


def test_collate_with_other_functions():
    from tercel.utils.data._utils.collate import collate, default_collate_fn_map

    class Text(str):
        pass

    joined = {**default_collate_fn_map, str: lambda batch, *, collate_fn_map: "+".join(batch), (set, frozenset): lambda b, **_: b}
    assert collate([("a", Text("b")), ("c", "d")], collate_fn_map=joined) == ["a+c", "b+d"]
    assert collate([{1}], collate_fn_map=joined) == [{1}]
    with pytest.raises(TypeError, match="default_collate: batch must contain"):
        collate([1])


def test_default_convert():
    array = np.arange(2)
    assert plain(default_convert(array)) == (tc.int64, [0, 1]) and plain(default_convert(np.float64(2))) == (tc.float64, 2)
    assert default_convert(array).data_ptr() == array.__array_interface__["data"][0]
    assert default_convert("text") == "text" and default_convert(None) is None and default_convert(3) == 3
    words = np.array(["a"])
    assert default_convert(words) is words and default_convert(np.str_("a")) == "a" and default_convert(np.bytes_(b"a")) == b"a"
    assert plain(default_convert({"a": array, "b": (1, array)})) == \
        (dict, {"a": (tc.int64, [0, 1]), "b": (list, [1, (tc.int64, [0, 1])])})
    assert type(default_convert(Point(array, 1))) is Point and type(default_convert(OwnList([array]))) is OwnList
    given = {"a": array}
    default_convert(given)
    assert given["a"] is array  # it is copied
    assert default_convert(range(2)) == [0, 1] and type(default_convert(Frozen({"a": array}))) is Frozen


def test_batches_of_a_dataset():
    assert batches(Numbers(5), batch_size=2) == [[0, 1], [2, 3], [4]]
    assert batches(Numbers(5), batch_size=2, drop_last=True) == [[0, 1], [2, 3]]
    assert list(DataLoader(Numbers(3), batch_size=None)) == [0, 1, 2]
    assert batches(Numbers(5), sampler=[4, 0]) == [[4], [0]]
    assert batches(Numbers(5), batch_sampler=[[4, 0], [1]]) == [[4, 0], [1]]
    assert list(DataLoader(Numbers(4), batch_size=2, collate_fn=tuple)) == [(0, 1), (2, 3)]
    assert batches([7, 8, 9], batch_size=3) == [[7, 8, 9]]
    shuffled = DataLoader(Numbers(100), batch_size=100, shuffle=True)
    first, second = (next(iter(shuffled)).tolist() for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(100)) and first != second != list(range(100))
    assert [len(DataLoader(Numbers(5), batch_size=2, drop_last=d)) for d in (False, True)] == [3, 2]
    assert len(DataLoader(Numbers(5), batch_size=None)) == len(iter(DataLoader(Numbers(5)))) == 5
    assert list(DataLoader(Numbers(0), batch_size=2)) == []


def test_the_same_seed_gives_the_same_order():
    def order(seed):
        tc.manual_seed(seed)
        return batches(Numbers(50), batch_size=10, shuffle=True)

    assert order(3) == order(3) != order(4)
    loader = DataLoader(Numbers(50), batch_size=50, shuffle=True, generator=tc.Generator().manual_seed(7))
    again = DataLoader(Numbers(50), batch_size=50, shuffle=True, generator=tc.Generator().manual_seed(7))
    assert [b.tolist() for b in (*loader, *loader)] == [b.tolist() for b in (*again, *again)]


def test_streams():
    assert batches(Stream(1, 2, 3), batch_size=2) == [[1, 2], [3]]
    assert batches(Stream(1, 2, 3), batch_size=2, drop_last=True) == [[1, 2]]
    assert list(DataLoader(Stream("a", 2), batch_size=None)) == ["a", 2]
    loader = DataLoader(Measured(1, 2, 3), batch_size=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(loader)) == 3  # nobody asked for the length
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2.when accessing len.dataloader.., but 3 samples have been fetched"):
        list(loader)
    assert len(DataLoader(Measured(1), batch_size=3)) == 1 and len(DataLoader(Measured(1), batch_size=3, drop_last=True)) == 0
    with pytest.raises(TypeError):
        len(DataLoader(Stream(1)))


class Lying(Numbers):
    def __len__(self):
        return self.size + 2


def test_a_length_that_is_wrong():
    loader = iter(DataLoader(Lying(3), batch_size=2))
    assert next(loader).tolist() == [0, 1]
    with pytest.raises(IndexError):
        next(loader)
    with pytest.raises(TypeError):
        list(DataLoader(object()))

    class Negative(Numbers):
        def __len__(self):
            return -1

    with pytest.raises(ValueError):
        list(DataLoader(Negative(1)))


@pytest.mark.parametrize("error", [StopIteration, ValueError, RuntimeError])
def test_an_error_of_a_sample(error):
    class Bad(Numbers):
        def __getitem__(self, i):
            if i == 1:
                raise error("one")
            return i

    loader = iter(DataLoader(Bad(3)))
    assert next(loader).item() == 0
    with pytest.raises(error, match="one"):
        next(loader)
    assert next(loader).item() == 2


class Slow(TensorDataset):
    """Has a __getitem__ of its own, so batches are collated sample by sample."""

    def __getitem__(self, index):
        return super().__getitem__(index)


def test_gathered_batches_are_the_collated_ones():
    x, y = tc.rand(10, 2, 2), tc.arange(10)
    for kwargs in ({}, {"sampler": [3, -1, 3, 0]}, {"drop_last": True}, {"batch_sampler": [[1], [2, 3]]}):
        size = {} if "batch_sampler" in kwargs else {"batch_size": 3}
        gathered = list(DataLoader(TensorDataset(x, y), **size, **kwargs))
        collated = list(DataLoader(Slow(x, y), **size, **kwargs))
        assert len(gathered) == len(collated) > 0
        for a, b in zip(gathered, collated):
            assert type(a) is type(b) is list and all(tc.equal(s, t) and s.stride() == t.stride() for s, t in zip(a, b))
    part = tud.Subset(tud.Subset(TensorDataset(y), [5, 7, 9]), [2, 0])
    assert [b[0].tolist() for b in DataLoader(part, batch_size=2)] == [[9, 5]]
    assert next(iter(DataLoader(TensorDataset(y), sampler=[True])))[0].shape == (1, 1, 10)  # a mask
    leaf = tc.rand(4, requires_grad=True)
    (batch,) = next(iter(DataLoader(TensorDataset(leaf), batch_size=2)))
    batch.sum().backward()
    assert leaf.grad.tolist() == [1, 1, 0, 0]
    batch, = next(iter(DataLoader(TensorDataset(y), batch_size=2)))
    batch.zero_()
    assert y.tolist() == list(range(10))  # never a view
    with pytest.raises(IndexError):
        list(DataLoader(TensorDataset(y), sampler=[10]))


@pytest.mark.parametrize("kwargs, error, message", [
    ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
    ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
    ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multiprocessing"),
    ({"num_workers": 1, "prefetch_factor": -1}, ValueError, "prefetch_factor option should be non-negative"),
    ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
    ({"shuffle": True, "sampler": [0]}, ValueError, "sampler option is mutually exclusive with shuffle"),
    ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler option is mutually exclusive"),
    ({"batch_sampler": [[0]], "drop_last": True}, ValueError, "batch_sampler option is mutually exclusive"),
    ({"batch_sampler": [[0]], "shuffle": True}, ValueError, "batch_sampler option is mutually exclusive"),
    ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching"),
    ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
    ({"multiprocessing_context": "fork"}, ValueError, "only be used with multi-process loading"),
    ({"num_workers": 1, "multiprocessing_context": "bad"}, ValueError, "should specify a valid start method in"),
    ({"num_workers": 1, "multiprocessing_context": object()}, TypeError, "should be a valid context object"),
    ({"nonsense": 1}, TypeError, "nonsense")])
def test_wrong_arguments(kwargs, error, message):
    with pytest.raises(error, match=message):
        DataLoader(Numbers(3), **kwargs)


@pytest.mark.parametrize("kwargs, message", [
    ({"shuffle": True}, "expected unspecified shuffle option, but got shuffle=True"),
    ({"sampler": [0]}, "expected unspecified sampler option"), ({"batch_sampler": [[0]]}, "expected unspecified batch_sampler")])
def test_wrong_arguments_for_streams(kwargs, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(Stream(1), **kwargs)
    assert batches(Stream(1), shuffle=False) == [[1]]


def test_attributes():
    loader = DataLoader(Numbers(3), batch_size=2)
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, None)
    loader.collate_fn = list
    assert list(loader) == [[0, 1], [2]]
    assert type(loader.sampler) is tud.SequentialSampler and type(loader.batch_sampler) is tud.BatchSampler
    assert loader.prefetch_factor is None and loader.multiprocessing_context is None
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        iter(loader).__getstate__()
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
        assert batches(Numbers(2), pin_memory=True) == [[0], [1]]
    with pytest.warns(UserWarning, match="pin_memory_device is deprecated|no accelerator is found"):
        list(DataLoader(Numbers(2), pin_memory=True, pin_memory_device="cuda"))
    with pytest.warns(UserWarning, match="will create 1000 worker processes in total. Our suggested max number"):
        DataLoader(Numbers(2), num_workers=1000)
    assert tud.get_worker_info() is None


def test_loops_in_loops():
    loader = DataLoader(Numbers(3))
    assert [(a.item(), b.item()) for a in loader for b in loader] == list(itertools.product(range(3), repeat=2))
    with pytest.raises(ValueError, match="mine"):  # of a sampler
        list(DataLoader(Numbers(3), sampler=(1 if i < 2 else (_ for _ in ()).throw(ValueError("mine")) for i in range(3))))


def test_what_a_program_sets_on_the_classes_takes_effect(monkeypatch):
    data = TensorDataset(tc.arange(3))
    part = tud.Subset(data, [2, 1, 0])
    with monkeypatch.context() as m:
        m.setitem(tud._utils.collate.default_collate_fn_map, tc.Tensor, lambda batch, collate_fn_map=None: "own")
        assert list(DataLoader(data, 3)) == list(DataLoader(part, 3)) == [["own"]]
    with monkeypatch.context() as m:
        m.setattr(TensorDataset, "__getitem__", lambda self, index: (9,))
        assert [[t.tolist() for t in batch] for loader in (data, part) for batch in DataLoader(loader, 3)] == [[[9, 9, 9]]] * 2
    with monkeypatch.context() as m:
        m.setattr(TensorDataset, "__getitems__", lambda self, indices: [(7,) for _ in indices], raising=False)
        assert next(iter(DataLoader(data, 2)))[0].tolist() == [7, 7]
    with monkeypatch.context() as m:
        m.setattr(tud.Subset, "__getitems__", lambda self, indices: [(8,) for _ in indices])
        assert next(iter(DataLoader(part, 2)))[0].tolist() == [8, 8]
    data.__getitems__ = lambda indices: [(6,) for _ in indices]
    assert next(iter(DataLoader(data, 2)))[0].tolist() == [6, 6]
    assert next(iter(DataLoader(TensorDataset(tc.arange(3)), 3)))[0].tolist() == [0, 1, 2]
