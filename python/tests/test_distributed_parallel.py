"""DistributedDataParallel on several ranks, against one process with the whole batch."""

import pytest
from ranks import check, needs_mpirun

import tercel as tc
import tercel.distributed as dist
from tercel import nn
from tercel.nn.parallel import DistributedDataParallel

MODELS = """
def network(seed):
    tc.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).double()

tc.manual_seed(7)
X, Y = tc.rand(12, 4).double(), tc.rand(12, 1).double()

def loss_of(model, rows):
    return (model(X[rows]) - Y[rows]).square().mean()

def own(start=0, stop=12):
    return slice(start + rank, stop, size)

def same_gradients(module, other):
    for a, b in zip(module.parameters(), other.parameters()):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            tc.testing.assert_close(a.grad, b.grad)

def same_on_all_ranks(thing):
    things = [None] * size
    dist.all_gather_object(things, pickle.dumps(thing))
    assert things == things[:1] * size
"""


@needs_mpirun
@pytest.mark.parametrize("ranks", [2, 3])
def test_training_is_that_of_one_process(ranks):
    check(ranks, MODELS + """
    for options in (dict(), dict(bucket_cap_mb=1e-4), dict(gradient_as_bucket_view=True, bucket_cap_mb=3e-4)):
        alone, model = network(0), DistributedDataParallel(network(rank), **options)
        assert [*model.state_dict()] == ["module." + name for name in alone.state_dict()]
        one, several = (tc.optim.Adam(m.parameters(), 0.01) for m in (alone, model))
        for _ in range(4):
            one.zero_grad(), several.zero_grad()
            loss_of(alone, slice(None)).backward(), loss_of(model, own()).backward()
            same_gradients(model, alone)
            one.step(), several.step()
        same_on_all_ranks([p.tolist() for p in model.parameters()])
        # Without zero_grad() gradients add up.
        loss_of(alone, slice(None)).backward(), loss_of(model, own()).backward()
        same_gradients(model, alone)
    """)


@needs_mpirun
def test_no_sync():
    check(2, MODELS + """
    alone, model = network(0), DistributedDataParallel(network(0))
    with model.no_sync():
        for first in (0, 4):
            loss_of(model, own(first, first + 4)).backward()
    gradient = model.module[0].weight.grad.clone()
    gradients = [tc.zeros_like(gradient) for _ in range(size)]
    dist.all_gather(gradients, gradient)
    assert not tc.equal(*gradients)
    loss_of(model, own(8, 12)).backward()
    for first in (0, 4, 8):
        loss_of(alone, slice(first, first + 4)).backward()
    same_gradients(model, alone)
    # A forward in no_sync() leaves the backward of the one before it.
    alone.zero_grad(), model.zero_grad()
    loss = loss_of(model, own(0, 4))
    with model.no_sync():
        loss_of(model, own(4, 8))
    loss.backward(), loss_of(alone, slice(0, 4)).backward()
    same_gradients(model, alone)
    with model.no_sync():
        loss_of(model, own(4, 8)).backward()
    dist.all_gather(gradients, model.module[0].weight.grad.clone())
    assert not tc.equal(*gradients)
    """)


@needs_mpirun
def test_parameters_without_gradients():
    check(3, MODELS + """
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.never, self.frozen = (nn.Linear(4, 1).double() for _ in range(4))
            self.frozen.requires_grad_(False)

        def forward(self, x, parts):
            return sum(getattr(self, part)(x).sum() for part in parts)

    for unused in (False, True):
        model = DistributedDataParallel(Parts(), find_unused_parameters=unused, bucket_cap_mb=1e-5)
        before = model.module.frozen.weight.clone()
        # Another part on each rank, also in another order.
        parts = [["first", "second", "frozen"], ["second"], ["second", "first"]][rank]
        model(X, parts).backward()
        same_on_all_ranks([p.grad is None or p.grad.tolist() for p in model.parameters()])
        tc.testing.assert_close(model.module.first.weight.grad, X.sum(0, keepdim=True) * 2 / 3)
        tc.testing.assert_close(model.module.second.weight.grad, X.sum(0, keepdim=True))
        assert model.module.never.weight.grad is None and model.module.frozen.weight.grad is None
        # What no rank reaches keeps the gradient of the last step.
        model(X, ["second"]).backward()
        tc.testing.assert_close(model.module.first.weight.grad, X.sum(0, keepdim=True) * 2 / 3)
        tc.testing.assert_close(model.module.second.weight.grad, X.sum(0, keepdim=True) * 2)
        assert tc.equal(before, model.module.frozen.weight)

    # A rank that reaches none at all.
    class Input(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1).double()

        def forward(self, x):
            return x * 2 if rank == 0 else self.layer(x)

    model = DistributedDataParallel(Input(), find_unused_parameters=True)
    model(X.clone().requires_grad_()).sum().backward()
    tc.testing.assert_close(model.module.layer.bias.grad, tc.tensor([8.0]).double())
    """)


@needs_mpirun
def test_sparse_gradients():
    check(2, """
    class Model(nn.Module):
        def __init__(self, sparse):
            super().__init__()
            tc.manual_seed(3)
            self.table, self.bag = nn.Embedding(6, 2, sparse=sparse), nn.EmbeddingBag(5, 2, sparse=sparse, mode="sum")
            self.unused, self.out = nn.Embedding(3, 2, sparse=sparse), nn.Linear(2, 1)

        def forward(self, keys, with_bag=True):
            x = self.table(keys).sum(1) + (self.bag(keys) if with_bag else 0)
            return self.out(x).square().mean()

    keys = tc.tensor([[0, 1], [1, 4], [4, 4], [0, 3]])
    alone, model = Model(False), DistributedDataParallel(Model(True))
    optimizer = tc.optim.SparseAdam([model.module.table.weight, model.module.bag.weight])
    for _ in range(2):
        alone(keys).backward(), model(keys[rank::2]).backward()
        for name in ("table", "bag"):
            gradient = getattr(model.module, name).weight.grad
            assert gradient.is_sparse and gradient.is_coalesced()
            tc.testing.assert_close(gradient.to_dense(), getattr(alone, name).weight.grad)
        assert model.module.unused.weight.grad is None
        tc.testing.assert_close(model.module.out.weight.grad, alone.out.weight.grad)
    optimizer.step()
    tables = [None] * size
    dist.all_gather_object(tables, model.module.table.weight.tolist())
    assert tables[0] == tables[1]
    # Rows that one rank alone has.
    model.zero_grad(), alone.zero_grad()
    alone.load_state_dict(model.module.state_dict())
    model(keys, with_bag=rank == 0).backward(), (alone(keys) / 2).backward()
    tc.testing.assert_close(model.module.bag.weight.grad.to_dense(), alone.bag.weight.grad)

    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(tc.ones(3, 2))

        def forward(self, keys):
            return nn.functional.embedding(keys, self.weight, sparse=True).sum()

    model = DistributedDataParallel(Other())
    raises(RuntimeError, "weight has a sparse gradient; only weights of Embedding", lambda: model(tc.tensor([1])).backward())
    """)


@needs_mpirun
def test_buffers():
    check(2, MODELS + """
    def model_with(**options):
        return DistributedDataParallel(nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 1)).double(), **options)

    def running(model):
        found = [None] * size
        dist.all_gather_object(found, model.module[0].running_mean.tolist())
        return found

    model, free = model_with(), model_with(broadcast_buffers=False)
    for step in range(2):
        for m in (model, free):
            m(X[own()]).sum().backward()
    assert running(model)[0] != running(model)[1] and running(free)[0] != running(free)[1]
    with tc.no_grad():  # the first evaluation begins with rank 0's
        model.eval()(X)
        if rank == 0:
            model(X)  # of one rank alone
    assert running(model)[0] == running(model)[1]
    alone = nn.BatchNorm1d(4).double()
    alone(X[::2]), alone(X[::2])
    tc.testing.assert_close(model.module[0].running_mean, alone.running_mean)
    """)


@needs_mpirun
def test_modules_that_differ_and_errors_in_backward():
    check(2, MODELS + """
    raises(RuntimeError, "rank 1 has weight of shape [1, 5]", lambda: DistributedDataParallel(nn.Linear(4 + rank, 1)))
    raises(RuntimeError, "rank 1 has 1 parameters", lambda: DistributedDataParallel(nn.Linear(4, 1, bias=rank == 0)))
    model = network(0)
    model._ddp_params_and_buffers_to_ignore = ["0.weight"]
    model[0].weight.data.fill_(rank)
    model = DistributedDataParallel(model)
    alone = network(0)
    loss_of(model, own()).backward()
    assert model.module[0].weight.tolist() == [[rank] * 4] * 8
    gradients = [None] * size
    dist.all_gather_object(gradients, model.module[0].weight.grad.tolist())
    assert gradients[0] != gradients[1]
    """)


@needs_mpirun
def test_a_backward_that_fails_on_all_ranks():
    check(2, MODELS + """
    model, alone = DistributedDataParallel(network(0), bucket_cap_mb=1e-4), network(0)

    def fails(g):
        raise KeyError("in backward")
    hook = model.module[0].weight.register_hook(fails)  # when the buckets of later layers are on their way
    raises(KeyError, "in backward", lambda: loss_of(model, own()).backward())
    hook.remove()
    model.zero_grad()
    loss_of(model, own()).backward(), loss_of(alone, slice(None)).backward()
    same_gradients(model, alone)
    """)


@needs_mpirun
def test_copies_and_checkpoints():
    check(2, MODELS + """
    model = DistributedDataParallel(network(0))
    loss_of(model, own()).backward()
    with io.BytesIO() as file:
        tc.save(model.state_dict(), file)
        state = tc.load(io.BytesIO(file.getvalue()))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.load_state_dict(state)
        other.zero_grad()
        loss_of(other, own()).backward()
        same_gradients(other, model)
    # A layer that is used twice, and checkpoints of activations.
    alone, layer = nn.Linear(4, 4).double(), DistributedDataParallel(nn.Linear(4, 4).double())
    layer.module.load_state_dict(alone.state_dict())

    def twice(m, x):
        return tc.utils.checkpoint.checkpoint(m, tc.utils.checkpoint.checkpoint(m, x, use_reentrant=False), use_reentrant=False)
    twice(alone, X).mean().backward(), twice(layer, X[own()]).mean().backward()
    same_gradients(layer, alone)
    hooked = layer.module.weight
    before = hooked.grad.clone()
    del layer, other
    gc.collect()
    (hooked * (rank + 1)).sum().backward()  # is no longer averaged
    assert tc.equal(hooked.grad, before + (rank + 1))
    """)


@pytest.fixture
def group():
    dist.init_process_group()
    yield
    dist.destroy_process_group()


def test_one_process(group):
    model = DistributedDataParallel(nn.Linear(2, 1))
    model(tc.ones(3, 2)).sum().backward()
    assert model.module.weight.grad.tolist() == [[3, 3]] and list(model.state_dict()) == ["module.weight", "module.bias"]
    with model.no_sync():
        assert not model.require_backward_grad_sync
    assert model.require_backward_grad_sync
    with pytest.raises(NotImplementedError, match="equally many batches"):
        model.join()
    with pytest.raises(NotImplementedError, match="gradients are averaged"):
        model.register_comm_hook(None, None)


@pytest.mark.parametrize("module, options, error, match", [
    (nn.ReLU(), {}, RuntimeError, "doesn't have any parameter that requires a gradient"),
    (nn.LazyLinear(2), {}, RuntimeError, "weight is uninitialized"),
    (nn.Linear(1, 1), dict(device_ids=[0]), ValueError, "no device_ids and no output_device"),
    (nn.Linear(1, 1), dict(bucket_cap_mb=0), ValueError, "bucket_cap_mb: expected a number above 0"),
    (nn.Linear(1, 1), dict(mixed_precision=1), ValueError, "mixed_precision: expected None"),
    (nn.Linear(1, 1), dict(process_group=1), ValueError, "the only one")])
def test_wrong_arguments(group, module, options, error, match):
    with pytest.raises(error, match=match):
        DistributedDataParallel(module, **options)
