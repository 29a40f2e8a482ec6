"""Random tensors with PyTorch's API: variants, dtypes, generators and messages. Distributions: tests/ops."""

import warnings

import pytest

import tercel as tc

INT_MIN = -2**63


def drawn(function, seed=1):
    return function(tc.Generator().manual_seed(seed))


@pytest.mark.parametrize("function", [
    lambda g: tc.rand(5, generator=g), lambda g: tc.randn((5,), generator=g),
    lambda g: tc.randint(1000, (5,), generator=g), lambda g: tc.randint(-5, 1000, (5,), generator=g),
    lambda g: tc.randperm(50, generator=g), lambda g: tc.rand_like(tc.ones(5), generator=g),
    lambda g: tc.randn_like(tc.ones(5), generator=g), lambda g: tc.randint_like(tc.ones(5), 1000, generator=g),
    lambda g: tc.randint_like(tc.ones(5), 5, 1000, generator=g), lambda g: tc.empty(5).uniform_(generator=g),
    lambda g: tc.empty(5).normal_(generator=g), lambda g: tc.empty(5).log_normal_(generator=g),
    lambda g: tc.empty(5).exponential_(generator=g), lambda g: tc.empty(5).cauchy_(generator=g),
    lambda g: tc.empty(5).geometric_(0.001, generator=g), lambda g: tc.empty(5).random_(generator=g),
    lambda g: tc.empty(5).random_(1000, generator=g), lambda g: tc.empty(5).random_(5, 1000, generator=g),
    lambda g: tc.empty(50).bernoulli_(generator=g), lambda g: tc.bernoulli(tc.full((50,), 0.5), generator=g),
    lambda g: tc.normal(tc.zeros(5), tc.ones(5), generator=g), lambda g: tc.normal(0.0, tc.ones(5), generator=g),
    lambda g: tc.normal(tc.zeros(5), generator=g), lambda g: tc.normal(0, 1, (5,), generator=g),
    lambda g: tc.poisson(tc.full((5,), 1000.0), g), lambda g: tc.binomial(tc.full((5,), 1e4), tc.tensor(0.5), g),
    lambda g: tc.multinomial(tc.ones(50), 9, generator=g), lambda g: tc.multinomial(tc.ones(50), 9, True, generator=g),
])
def test_generators_decide(function):
    before = tc.get_rng_state()
    one, same, other = drawn(function), drawn(function), drawn(function, 2)
    assert one.equal(same) and not one.equal(other)
    assert tc.get_rng_state().equal(before)  # the default one was left alone


def test_states_and_forks():
    tc.manual_seed(3)
    with tc.random.fork_rng():
        inside = tc.rand(4)
    assert tc.rand(4).equal(inside)
    with tc.fork_rng(enabled=False):
        tc.rand(4)
    assert not tc.rand(4).equal(inside)
    g = tc.Generator().manual_seed(5)
    tc.rand(3, generator=g)
    copy = g.clone_state()
    assert tc.rand(3, generator=g).equal(tc.rand(3, generator=copy)) and copy.initial_seed() == 5
    assert tc.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1 and tc.manual_seed(-1).initial_seed() == 2**64 - 1
    assert tc.seed() == tc.initial_seed()
    with pytest.raises(TypeError, match="RNG state must be a tercel.ByteTensor"):
        tc.set_rng_state(tc.zeros(16))
    with pytest.raises(RuntimeError, match="wrong size"):
        tc.set_rng_state(tc.zeros(5, dtype=tc.uint8))


def test_signatures():
    assert tc.randint_like(tc.ones(3), 5).dtype is tc.float32
    assert tc.randint_like(tc.ones(3), 5, dtype=tc.int64, memory_format=tc.preserve_format).dtype is tc.int64
    assert tc.randint(3, (2,), dtype=tc.float32).dtype is tc.float32
    assert tc.randint(high=3, size=(2,)).dtype is tc.int64 and tc.randperm(5, dtype=tc.float32).dtype is tc.float32
    assert tc.randperm(9, out=tc.empty(0, dtype=tc.int32)).sort().values.tolist() == list(range(9))
    assert tc.normal(2, 3, size=(2, 2), dtype=tc.float64, requires_grad=True).requires_grad
    assert tc.normal(tc.zeros(3), tc.ones(3, dtype=tc.float64)).dtype is tc.float32
    assert tc.normal(tc.zeros(3), tc.ones(3), out=tc.empty(0, dtype=tc.float64)).dtype is tc.float64
    assert tc.empty(3, dtype=tc.int64).bernoulli_(tc.ones(3)).tolist() == [1, 1, 1]
    assert tc.zeros(2, 3).bernoulli(1.0).sum() == 6 and tc.bernoulli(tc.ones(3)).tolist() == [1, 1, 1]
    assert tc.bernoulli(tc.ones(2), out=tc.empty(0, dtype=tc.int64)).tolist() == [1, 1]
    assert tc.ones(2, 5).multinomial(3).shape == (2, 3)
    assert tc.empty(9).random_(**{"from": 4, "to": 5}).eq(4).all() and tc.empty(9).random_(3, None).ge(3).all()
    assert tc.empty(3, dtype=tc.int64).random_(INT_MIN, None).dtype is tc.int64
    assert tc.rand(3, dtype=tc.complex64).dtype is tc.complex64


def test_sentences():
    for error, text, call in (
        (RuntimeError, "random_ expects 'from' to be less than 'to', but got from=6 >= to=5",
         lambda: tc.empty(3).random_(6, 5)),
        (RuntimeError, "to - 1 is out of bounds for unsigned char", lambda: tc.empty(3, dtype=tc.uint8).random_(257)),
        (RuntimeError, "from is out of bounds for unsigned char", lambda: tc.randint(-1, 3, (2,), dtype=tc.uint8)),
        (RuntimeError, "random_ expects 'from' to be less than 'to'", lambda: tc.randint(3, 3, (2,))),
        (RuntimeError, "exponential_ expects lambda > 0.0", lambda: tc.empty(3).exponential_(-1)),
        (RuntimeError, "continuous probability distribution", lambda: tc.empty(3, dtype=tc.int64).cauchy_()),
        (RuntimeError, r"geometric_ expects p to be in \(0, 1\), but got p=1", lambda: tc.empty(3).geometric_(1)),
        (RuntimeError, "log_normal_ expects std > 0.0", lambda: tc.empty(3).log_normal_(1, 0)),
        (RuntimeError, "normal expects std >= 0.0, but found std -2", lambda: tc.normal(tc.zeros(3), -2)),
        (RuntimeError, "normal expects all elements of std >= 0.0", lambda: tc.normal(0, -tc.ones(3))),
        (RuntimeError, r"must match the size of tensor b \(2\)", lambda: tc.normal(tc.zeros(3), tc.ones(2))),
        (TypeError, "invalid combination of arguments", lambda: tc.normal(0.0, 1.0)),
        (RuntimeError, "to is out of bounds for float", lambda: tc.empty(3).uniform_(0, float("inf"))),
        (RuntimeError, "from=2 > to=1", lambda: tc.empty(3).uniform_(2, 1)),
        (RuntimeError, "cannot sample n_sample <= 0 samples", lambda: tc.multinomial(tc.ones(3), 0)),
        (RuntimeError, "multinomial expects Long tensor out", lambda: tc.multinomial(tc.ones(3), 1, out=tc.empty(0))),
        (RuntimeError, "invalid multinomial distribution", lambda: tc.multinomial(tc.zeros(3), 1)),
        (RuntimeError, "invalid Poisson rate", lambda: tc.poisson(-tc.ones(3))),
        (RuntimeError, "dtype Float does not match dtype of out parameter",
         lambda: tc.rand(2, out=tc.empty(2).double(), dtype=tc.float32)),
        (RuntimeError, "n cannot be greater than 2049", lambda: tc.randperm(3000, dtype=tc.float16)),
        (RuntimeError, "negative dimension", lambda: tc.randperm(-1)),
    ):
        with pytest.raises(error, match=text):
            call()


def test_integers_that_a_dtype_has_not():
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-\(2\^24\), 2\^24\]"):
        tc.empty(3).random_(2**24 + 2)
    with pytest.warns(UserWarning, match="from is out of bounds"):
        tc.randint(-2**12, 5, (2,), dtype=tc.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tc.empty(3).random_(2**24)
        tc.randint(2**62, (2,))
