"""COO tensors as PyTorch's test_sparse.py has them: broadcasting, resizing, numbers, in-place changes, refusals."""

import itertools
import warnings

import pytest

import tercel as tc


def matrix():
    return tc.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse()


def uncoalesced():
    return tc.sparse_coo_tensor([[0, 0, 1], [1, 1, 2]], [1.0, 2, 4], (2, 3))


def check_order(x):
    """RuntimeError if x claims falsely to be coalesced."""
    tc.sparse_coo_tensor(x._indices(), x._values(), x.shape, check_invariants=True, is_coalesced=x.is_coalesced())


@pytest.mark.parametrize("given, wanted", [
    ((), (2,)), ((), (2, 3)), ((1,), (4,)), ((2,), (3, 2)), ((1, 3), (4, 3)), ((3, 1), (3, 2)), ((1, 1), (3, 2)),
    ((2, 1, 3), (2, 4, 3)), ((3, 1, 2), (2, 3, 4, 2)), ((1, 2, 1), (3, 2, 4)), ((2, 1, 1), (2, 3, 4)), ((1, 3), (0, 3)),
    ((0, 1), (0, 2)), ((2, 3), (1, 2, 3)), ((2, 3), (2, 3))])
def test_broadcast(given, wanted):
    dense = tc.arange(1.0, tc.ones(given).numel() + 1).reshape(given) % 3
    for sparse_dim in range(1 if given else 0, len(given) + 1):
        x = dense.to_sparse(sparse_dim) if given else dense.to_sparse()
        twice = tc.sparse_coo_tensor(tc.cat([x._indices()] * 2, 1), tc.cat([x._values() / 4] * 2), given)
        for one in (x, twice):
            got = tc._sparse_broadcast_to(one, wanted)
            assert tc.equal(got.to_dense(), one.to_dense().broadcast_to(wanted))
            check_order(got)
        leaf = x.detach().requires_grad_()
        tc._sparse_broadcast_to(leaf, wanted).to_dense().sum().backward()
        times = tc.ones(wanted).numel() // max(tc.ones(given).numel(), 1)
        assert leaf.grad._nnz() == x._nnz() and bool((leaf.grad.to_dense()[x.to_dense() != 0] == times).all())


def test_order_of_what_is_broadcast():
    x = matrix()
    assert tc._sparse_broadcast_to(x, (2, 2, 3)).is_coalesced()
    assert tc._sparse_broadcast_to(tc.tensor([[3.0], [4]]).to_sparse(), (2, 5)).is_coalesced()
    assert not tc._sparse_broadcast_to(x.unsqueeze(1), (2, 4, 3)).is_coalesced()
    assert not tc._sparse_broadcast_to(uncoalesced(), (2, 2, 3)).is_coalesced()


def test_order_of_what_is_permuted():
    x = tc.ones(2, 2, 2, 2).to_sparse(3)
    for dims, keeps in [((0, 1, 2, 3), True), ((-4, -3, -2, -1), True), ((0, 2, 1, 3), False), ((1, 0, 2, 3), False)]:
        assert x.permute(dims).is_coalesced() is keeps
        check_order(x.permute(dims))


def test_what_does_not_broadcast():
    for size, message in [((2,), "the requested broadcast shape has fewer dimensions than the input"),
                          ((2, 4), "The input's length 3 at dimension 1 does not broadcast over the requested shape of length 4"),
                          ((-1, 2, 3), "sizes that are not negative")]:
        with pytest.raises(RuntimeError, match=message):
            tc._sparse_broadcast_to(matrix(), size)
    for call in (lambda x: x.expand(4, 2, 3), lambda x: x.broadcast_to((4, 2, 3)), lambda x: x.expand_as(x)):
        with pytest.raises(RuntimeError, match="expand is unsupported for Sparse tensors"):
            call(matrix())
        with pytest.raises(RuntimeError, match="expand is unsupported for SparseCsr tensors"):
            call(matrix().to_sparse_csr())
    assert tc.ones(1, 3).expand_as(matrix()).shape == (2, 3)


def test_resizing_as_another():
    wide = tc.sparse_coo_tensor((3, 4))
    for resize in (lambda x, y: x.resize_as_(y), lambda x, y: x.resize_as_sparse_(y), tc.resize_as_sparse_):
        x = matrix()
        assert resize(x, wide) is x and x.shape == (3, 4)
        assert tc.equal(x.to_dense()[:2, :3], matrix().to_dense()) and x.to_dense().sum() == 6
        empty = tc.sparse_coo_tensor((1,))
        assert resize(empty, tc.ones(2, 3).to_sparse(1)) is empty and empty.dense_dim() == 1
        with pytest.raises(RuntimeError, match="shrinking the size of sparse dimensions"):
            resize(matrix(), tc.sparse_coo_tensor((1, 3)))
    assert tc.ones(2, 3).resize_as_(tc.sparse_coo_tensor((2, 1))).shape == (2, 1)
    with pytest.raises(RuntimeError, match=r"changing the number of sparse dimensions \(from 2 to 0\)"):
        matrix().resize_as_sparse_(tc.ones(2, 3))
    for refused in (lambda: matrix().resize_(3, 4), lambda: matrix().resize_as_(tc.ones(3, 4))):
        with pytest.raises(NotImplementedError, match="resize_: not implemented for layout sparse_coo"):
            refused()


def test_norms():
    norm = (1 + 4 + 9) ** 0.5
    for got in (matrix().norm(), matrix().norm(dim=[]), matrix().norm(dim=(0, -1)), tc.norm(matrix(), 2, (1, 0)),
                tc.linalg.vector_norm(matrix()), tc.linalg.norm(matrix()), matrix().to_sparse_csr().norm(dim=(0, 1))):
        assert abs(got.item() - norm) < 1e-6
    for arguments, error, message in [
            ({"keepdim": True}, RuntimeError, "norm_sparse currently does not support keepdim=True"),
            ({"dim": 0}, RuntimeError, "norm_sparse currently only supports full reductions"),
            ({"dim": (0, 0)}, RuntimeError, "appears multiple times"),
            ({"dtype": tc.float64}, ValueError, "dtype argument is not supported in frobenius norm"),
            ({"dtype": tc.float64, "p": 0}, RuntimeError, "norm_sparse currently does not support 'dtype' argument"),
            ({"p": "nuc"}, NotImplementedError, "not implemented for layout sparse_coo")]:
        with pytest.raises(error, match=message):
            matrix().norm(**arguments)


def test_floor_divide():
    assert tc.equal((matrix() // 2).to_dense(), matrix().to_dense() // 2)
    assert tc.equal(matrix().floor_divide_(tc.tensor(2.0)).to_dense(), matrix().to_dense() // 2)
    start = r"Sparse floor division requires a scalar or zero-dim dense tensor divisor \(got "
    dense, number = tc.ones(2, 3), tc.tensor(2.0).to_sparse()
    for call, rest in [(lambda: matrix() // matrix(), r"shape \[2, 3\] for divisor\)"),
                       (lambda: matrix() // dense, r"shape \[2, 3\] for divisor\)"),
                       (lambda: dense // matrix(), r"shape \[2, 3\] for divisor\)"), (lambda: 2 // matrix(), "shape"),
                       (lambda: matrix() // number, r"a sparse divisor\)"),
                       (lambda: matrix().floor_divide_(matrix()), "shape")]:
        with pytest.raises(RuntimeError, match=start + rest):
            call()
    for divide in (lambda x: x.floor_divide_(2), lambda x: x.div_(2, rounding_mode="floor"), lambda x: x.div_(2).floor()):
        assert tc.equal(divide(uncoalesced()).to_dense(), uncoalesced().to_dense() // 2)
    with pytest.raises(RuntimeError, match=r"Sparse division requires a scalar .* \(got a sparse divisor\)"):
        matrix() / number


def test_truth():
    for values, truth in [([1.0], True), ([0.0], False), ([-1.0, 1.0], False), ([], False)]:
        x = tc.sparse_coo_tensor(tc.zeros(1, len(values), dtype=tc.int64), tc.tensor(values), (1,))
        assert x.is_nonzero() is tc.is_nonzero(x) is bool(x) is truth
    assert tc.tensor(1.0).to_sparse().is_nonzero() and not tc.sparse_coo_tensor((1, 1)).is_nonzero()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        matrix().is_nonzero()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        tc.sparse_coo_tensor((0,)).is_nonzero()


def test_matrix_vector():
    v = tc.tensor([1.0, 2, 4])
    assert matrix().mv(v).tolist() == (matrix() @ v).tolist() == [9, 6]
    assert uncoalesced().mv(v).tolist() == [6, 16] and tc.ones(2, 3).mv(v.to_sparse()).tolist() == [7, 7]
    for call, message in [(lambda: matrix().mv(matrix()), "two tensor dim should be 2 and 1, but got SparseTensor Dim: 2Tensor Dim: 2"),
                          (lambda: matrix().mv(tc.ones(4)), r"mv: expected self.size\(-1\) == vec.size\(-1\)"),
                          (lambda: matrix().mv(v.to_sparse()), "mv: not implemented for layout sparse_coo")]:
        with pytest.raises(RuntimeError, match=message):
            call()


def test_memory_of_a_sparse_tensor():
    csr = matrix().to_sparse_csr()
    for call, error, message in [
            (lambda: matrix().contiguous(), RuntimeError, "unsupported memory format option Contiguous"),
            (lambda: matrix().contiguous(memory_format=tc.channels_last), RuntimeError, "option ChannelsLast"),
            (lambda: csr.contiguous(), RuntimeError, "Sparse CSR tensors do not have is_contiguous"),
            (lambda: matrix().to_sparse_bsc((1, 1)).is_contiguous(), RuntimeError, "Sparse BSC tensors do not have is_contiguous"),
            (lambda: matrix().share_memory_(), NotImplementedError, "Cannot access storage of SparseTensorImpl"),
            (lambda: matrix().is_shared(), NotImplementedError, "Cannot access storage of SparseTensorImpl"),
            (lambda: csr.is_shared(), NotImplementedError, "Cannot access storage of SparseCsrTensorImpl"),
            (lambda: csr.share_memory_(), NotImplementedError, "Cannot access storage of SparseCsrTensorImpl")]:
        with pytest.raises(error, match=message):
            call()
    assert not matrix().is_contiguous() and not tc.ones(2).is_shared()


def test_new_tensors_like_one():
    csr, bsr = matrix().to_sparse_csr(), tc.ones(2, 4, 6).to_sparse_bsr((2, 3))
    for x, layout, parts in [(csr, tc.sparse_csc, ((4,), (0,), (0,))), (csr.to_sparse_csc(), tc.sparse_csr, ((3,), (0,), (0,))),
                             (bsr, tc.sparse_bsc, ((2, 3), (2, 0), (2, 0, 2, 3))),
                             (tc.ones(4, 6, 5).to_sparse_bsc((2, 3), 1), tc.sparse_bsr, ((3,), (0,), (0, 2, 3, 5)))]:
        made = tc.zeros_like(x, layout=layout, dtype=tc.float64)
        assert made.layout is layout and made.shape == x.shape and made.dtype is tc.float64
        offsets, plain = ((made.crow_indices(), made.col_indices()) if layout in (tc.sparse_csr, tc.sparse_bsr) else
                          (made.ccol_indices(), made.row_indices()))
        assert (offsets.shape, plain.shape, made.values().shape) == parts and not made.to_dense().any()
    made = tc.zeros_like(tc.ones(2, 4, 6, 5).to_sparse_csr(1), layout=tc.sparse_coo)
    assert made.sparse_dim() == 3 and made.dense_dim() == 1 and made._nnz() == 0
    for x, layout, message in [(csr, tc.sparse_bsr, "blocksize needs to be a tuple of size 2, but got 0"),
                               (bsr, tc.sparse_csr, "blocksize cannot be specified for non-block layout SparseCsr")]:
        with pytest.raises(RuntimeError, match=message):
            tc.zeros_like(x, layout=layout)
    with pytest.raises(RuntimeError, match="but you requested SparseCsc"):
        tc.empty_like(csr, layout=tc.sparse_csc)
    for make in (tc.zeros_like, tc.empty_like):
        for form in (tc.preserve_format, tc.contiguous_format, tc.channels_last):
            with pytest.raises(RuntimeError, match="memory format option is only supported by strided tensors"):
                make(matrix(), memory_format=form)
        assert make(tc.ones(1, 2, 3, 4).to_sparse(), layout=tc.strided, memory_format=tc.channels_last).layout is tc.strided


def test_sums_with_tensors_without_entries():
    hybrid, nothing = tc.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse(1), tc.sparse_coo_tensor((2, 3))
    for x in (hybrid, matrix(), uncoalesced()):
        for got, want in [(x + nothing, 1), (nothing + x, 1), (x - nothing, 1), (nothing - x, -1)]:
            assert got.sparse_dim() == x.sparse_dim() and tc.equal(got.to_dense(), want * x.to_dense())
    total = hybrid + nothing
    total._values().mul_(2)  # the parts are its own
    assert hybrid.to_dense().sum() == 6
    assert (hybrid + nothing.double()).dtype is tc.float64 and (nothing.to(tc.int64) + hybrid).dtype is tc.float32
    leaf = hybrid.detach().requires_grad_()
    (nothing.clone().add_(leaf, alpha=3) + leaf).to_dense().sum().backward()
    assert tc.equal(leaf.grad.to_dense(), tc.full((2, 3), 4.0))
    with pytest.raises(RuntimeError, match="expected sizes of 'self' and 'other' to match"):
        hybrid + tc.sparse_coo_tensor((3, 2))
    with pytest.raises(RuntimeError, match="same density"):
        hybrid + matrix()


def test_products_with_a_number():
    number = tc.sparse_coo_tensor(tc.zeros(0, 2, dtype=tc.int64), tc.tensor([1.0, 2]), ())
    for x in (matrix(), uncoalesced(), matrix().to_dense().to_sparse(1), tc.tensor(2).to_sparse()):
        for got in (x * number, number * x):
            assert got.sparse_dim() == x.sparse_dim() and got.dtype is tc.float32
            assert tc.equal(got.to_dense(), 3 * x.to_dense())
    assert (matrix().double() * number).dtype is tc.float64
    three = tc.sparse_coo_tensor(tc.zeros(0, 3, dtype=tc.int64), tc.tensor([1, 2, 4]), ())
    for got in (number * three, three * number):  # entries of the one that has more
        assert got._values().tolist() == [3, 6, 12] and got.dtype is tc.float32
    leaf = number.detach().requires_grad_()
    (matrix() * leaf).to_dense().sum().backward()
    assert leaf.grad.to_dense().item() == 6
    assert tc.equal((tc.ones(2, 3) * number).to_dense(), tc.full((2, 3), 3.0))


def test_views_under_other_names():
    dense, x = matrix().to_dense(), tc.ones(2, 3, 4).tril().to_sparse()
    for got, want in [(matrix().adjoint(), dense.T), (x.movedim(0, 2), x.to_dense().movedim(0, 2)),
                      (tc.moveaxis(x, (0, 1), (1, 2)), tc.moveaxis(x.to_dense(), (0, 1), (1, 2))),
                      (matrix().swapaxes_(0, 1), dense.T), (matrix().swapdims_(0, 1), dense.T),
                      (tc.column_stack([matrix(), matrix()]), tc.cat([dense, dense], 1)),
                      (tc.column_stack([tc.ones(2).to_sparse(), matrix()]), tc.column_stack([tc.ones(2), dense])),
                      (matrix().float_power(2), dense.float_power(2)), (matrix().resolve_conj().resolve_neg(), dense)]:
        assert got.is_sparse and got.dtype is want.dtype and tc.equal(got.to_dense(), want)
    assert not matrix().is_conj() and not tc.is_neg(matrix())


def test_a_false_claim_of_order():
    claimed = tc.sparse_coo_tensor([[1, 0, 1, 1]], [1.0, 2, 4, 8], (3,), check_invariants=False, is_coalesced=True)
    assert claimed.is_coalesced() and (tc.ones(3) + claimed).tolist() == [3, 14, 1]
    x = tc.ones(3)
    assert x.add_(claimed, alpha=2) is x and x.tolist() == [5, 27, 1]
    many = 100_000
    claimed = tc.sparse_coo_tensor(tc.zeros(1, many, dtype=tc.int64), tc.ones(many), (2,), check_invariants=False,
                                   is_coalesced=True)
    assert (tc.zeros(2) + claimed).tolist() == [many, 0]


def test_in_place_changes_are_recorded():
    x, y = matrix().double().requires_grad_(), uncoalesced().double().requires_grad_()

    def changed(a, b):
        z = a * 1
        same = z
        z.mul_(3).add_(b, alpha=2).neg_()
        z.copy_(z.coalesce())
        assert same is z and z.requires_grad and not z.is_leaf
        return z

    changed(x, y).to_dense().sum().backward()
    entries = tc.tensor([[1.0, 1, 1], [0, 1, 1]], dtype=tc.float64)  # of either
    assert tc.equal(x.grad.to_dense(), -3 * entries) and tc.equal(y.grad.to_dense(), -2 * entries)
    check = tc.sparse.as_sparse_gradcheck(tc.autograd.gradcheck)
    for change in (lambda z: z.sin_(), lambda z: z.tanh_(), lambda z: z.expm1_().sqrt_(), lambda z: z.mul_(z.clone()),
                   lambda z: z.div_(4).abs_(), lambda z: z.transpose_(0, 1), lambda z: z.pow_(3), lambda z: z.to(tc.float64)):
        assert check(lambda a: change((a * 1).coalesce()), (matrix().double().coalesce().requires_grad_(),), masked=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.mul_(2)
    with tc.no_grad():
        x.mul_(2)
    assert x.is_leaf and x.requires_grad and x.to_dense().sum() == 12
    used = x * 1
    product = used * used
    used.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.to_dense().sum().backward()


@pytest.mark.parametrize("layout", [tc.sparse_csr, tc.sparse_csc, tc.sparse_bsr])
def test_in_place_changes_of_compressed_tensors_are_recorded(layout):
    def leaf():
        x = matrix().to_dense().to_sparse(layout=layout, blocksize=(1, 1) if layout is tc.sparse_bsr else None)
        return x.requires_grad_()

    for change, slopes in [(lambda z: z.mul_(3).neg_(), [-3, 0, -3, 0, -3, 0]), (lambda z: z.square_(), [2, 0, 4, 0, 6, 0]),
                           (lambda z: z.div_(2), [.5, 0, .5, 0, .5, 0]), (lambda z: z.zero_(), [0] * 6),
                           (lambda z: z.copy_(leaf().detach()), [0] * 6)]:
        x = leaf()
        z = x * 1
        assert change(z) is z and z.requires_grad
        z.to_dense().sum().backward()
        assert x.grad.layout is layout and x.grad.to_dense().flatten().tolist() == slopes
    x, z = leaf(), leaf().detach()
    z.copy_(x)
    (z * 2).to_dense().sum().backward()
    assert x.grad.to_dense().flatten().tolist() == [2, 0, 2, 0, 2, 0]


def test_what_was_replaced_has_no_gradient():
    x, y = matrix().requires_grad_(), matrix().requires_grad_()
    z = x * 1
    z.copy_(y)
    z.to_dense().sum().backward()
    assert not x.grad.to_dense().any() and tc.equal(y.grad.to_dense(), tc.tensor([[1.0, 0, 1], [0, 1, 0]]))
    w = y * 1
    w.zero_()
    w.to_dense().sum().backward()
    assert tc.equal(y.grad.to_dense(), tc.tensor([[1.0, 0, 1], [0, 1, 0]]))


def test_arguments_that_do_not_fit():
    storage = tc.ones(3).untyped_storage()
    for call, error, message in [
            (lambda: matrix().narrow_copy(10, 0, 1), RuntimeError, "Dimension 10 out of range. Expecting 0 <= dim < 2."),
            (lambda: matrix().narrow_copy(0, 1, 2), RuntimeError, r"must be a subset of range\(0, 2\)"),
            (lambda: matrix().narrow(0, 1, 2), RuntimeError, r"start \(1\) \+ length \(2\) exceeds dimension size \(2\)"),
            (lambda: matrix().narrow(0, 3, 1), IndexError, r"start out of range \(expected to be in range of \[-2, 2\]"),
            (lambda: matrix().new(storage), TypeError, r"but got \(UntypedStorage\)"),
            (lambda: matrix().new(tc.ones(3)), TypeError, r"but got \(Tensor\)"),
            (lambda: tc.ones(2).to_sparse(blocksize=(1,)), RuntimeError, "blocksize needs to be a tuple of size 2, but got 1"),
            (lambda: matrix().to(tc.int64).requires_grad_(), RuntimeError, "only Tensors of floating point dtype can require gradients")]:
        with pytest.raises(error, match=message):
            call()
    assert tc.equal(matrix().narrow_copy(-1, 1, 2).to_dense(), matrix().to_dense()[:, 1:])


def test_constructors_of_older_programs():
    indices, values = tc.tensor([[0, 1], [1, 0]]), tc.tensor([1.0, 2])
    tc._sparse._SparseLegacyType._warned = False
    with pytest.warns(UserWarning, match=r"tercel.sparse.FloatTensor\(\) is deprecated.  Please use tercel.sparse_coo_tensor"):
        x = tc.sparse.FloatTensor(indices, values, tc.Size([2, 3]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the warning comes once
        assert x.to_dense().tolist() == [[0, 1, 0], [2, 0, 0]]
        assert tc.sparse.DoubleTensor(indices, values).dtype is tc.float64
        for made in (tc.sparse.LongTensor(2, 3), tc.sparse.LongTensor(tc.Size([2, 3]))):
            assert made.dtype is tc.int64 and made.shape == (2, 3) and made._nnz() == 0
        assert tc.sparse.FloatTensor().shape == (0,)
        for arguments in (([2, 3],), (indices,), (indices, values, tc.Size([2, 3]), 1)):
            with pytest.raises(TypeError, match=r"tercel.sparse.FloatTensor\("):
                tc.sparse.FloatTensor(*arguments)
    assert isinstance(x, tc.sparse.FloatTensor) and not isinstance(x, (tc.FloatTensor, tc.sparse.DoubleTensor))
    assert not isinstance(x.to_sparse_csr(), (tc.FloatTensor, tc.sparse.FloatTensor))
    assert isinstance(values, tc.FloatTensor) and not isinstance(values, tc.sparse.FloatTensor)
    assert x.type() == f"tercel.{tc.sparse.FloatTensor.__name__}" and x.type(tc.sparse.DoubleTensor).dtype is tc.float64
    kinds = [name for name in tc.sparse.__all__ if name.endswith("Tensor")]
    assert len(kinds) == 9 and all(getattr(tc.sparse, name).__name__ == f"sparse.{name}" for name in kinds)


def test_products_added_to_a_sparse_matrix():
    dense = tc.tensor([[1.0, 2], [3, 4], [5, 6]])
    x = tc.tensor([[0.0, 1], [2, 0]])
    got = tc.saddmm(x.to_sparse(), matrix(), dense, beta=2, alpha=3)
    assert got.is_sparse and tc.equal(got.to_dense(), 2 * x + 3 * (matrix().to_dense() @ dense))


@pytest.mark.parametrize("sizes, sparse_dim", [((3, 4), 2), ((3, 4), 1), ((2, 3, 4), 2), ((5,), 1)])
@pytest.mark.parametrize("op", ["sum", "prod", "amax", "amin"])
def test_masked_reductions(op, sizes, sparse_dim):
    tc.manual_seed(0)
    dense = tc.randint(-3, 4, sizes).double()
    dense[0] = 0
    mask = tc.rand(sizes) < 0.6
    reduce = getattr(tc.masked, op)
    for dims, keepdim in itertools.product([(), 0, -1, tuple(range(len(sizes)))], [False, True]):
        want = reduce(dense, dims, keepdim=keepdim, mask=mask)
        left = mask.sum(dims, keepdim=keepdim) if dims != () else mask.sum(tuple(range(len(sizes))), keepdim=keepdim)
        for m in (mask, mask.to_sparse(sparse_dim)):
            got = reduce(dense.to_sparse(sparse_dim), dims, keepdim=keepdim, mask=m)
            assert got.is_sparse and got.shape == want.shape
            check_order(got)
            assert tc.equal(got.to_dense()[left > 0], want[left > 0])


def test_masked_reductions_of_what_has_entries():
    x = uncoalesced()
    assert tc.equal(tc.masked.sum(x, 1).to_dense(), tc.tensor([3.0, 4]))
    assert tc.masked.sum(x.to(tc.int32), 0).dtype is tc.int64
    mask = tc.tensor([[True], [False]])
    for m in (mask, mask.to_sparse()):
        got = tc.masked.amax(x, 1, mask=m)
        assert got._nnz() == 1 and got.to_dense().tolist() == [3, 0]
    many = tc.full((1000,), 1.0, dtype=tc.bfloat16).to_sparse()
    assert tc.masked.sum(many, mask=tc.ones(1000, dtype=tc.bool)).to_dense().item() == 1000
    empty = tc.masked.prod(tc.sparse_coo_tensor((2, 3)), mask=tc.zeros(2, 3, dtype=tc.bool))
    assert empty.to_dense().item() == 1
    number = tc.tensor(3.0).to_sparse()
    assert tc.masked.prod(number, mask=tc.tensor(False)).to_dense().item() == 1
    assert tc.masked.amax(number, mask=tc.tensor(True), keepdim=True).to_dense().item() == 3
    leaf = matrix().requires_grad_()
    tc.masked.prod(leaf, 0, mask=tc.tensor([[True, False, True], [False, True, False]])).to_dense().sum().backward()
    assert tc.equal(leaf.grad.to_dense(), tc.tensor([[1.0, 0, 1], [0, 1, 0]]))
    for op in ("prod", "amax", "amin"):
        with pytest.raises(ValueError, match=f"masked {op} expects explicit mask for sparse_coo tensor input"):
            getattr(tc.masked, op)(x, 0)
