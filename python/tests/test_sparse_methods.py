"""Methods and functions that PyTorch has for sparse tensors beside their arithmetic."""

import io
import math

import pytest

import tercel as tc


def matrix():
    return tc.tensor([[1.0, 2], [0, 3]])


def one(*values):
    return tc.sparse_coo_tensor([[0] * len(values)], list(values), (1,))


def test_the_number_in_a_tensor_of_one_element():
    assert one(2.0).item() == float(one(2.0)) == 2.0 and int(one(2.0)) == 2 and bool(one(2.0))
    assert one(2.0, 3.0).item() == 5.0 and tc.sparse_coo_tensor((1,)).item() == 0
    assert tc.tensor([[4.0]]).to_sparse_csr().item() == 4.0
    with pytest.raises(RuntimeError, match="a Tensor with 4 elements cannot be converted to Scalar"):
        matrix().to_sparse().item()


def test_new():
    made = one(2.0).double().new()
    assert made.is_sparse and made.shape == (0,) and made.dtype == tc.float64
    assert one(2.0).new(2, 2).shape == one(2.0).new(tc.Size([2, 2])).shape == (2, 2)
    assert one(2.0).new(tc.tensor([[1]]), tc.tensor([3.0])).to_dense().tolist() == [0, 3]
    with pytest.raises(TypeError, match=r"SparseTensor.new\(sequence\) only accepts sizes"):
        one(2.0).new([1, 2])
    with pytest.raises(RuntimeError, match="new: not implemented for layout tercel.sparse_csr"):
        matrix().to_sparse_csr().new(2, 2)


@pytest.mark.parametrize("name", ["hstack", "vstack", "row_stack", "dstack"])
def test_stacks(name):
    stack = getattr(tc, name)
    for x in (tc.tensor([1.0, 0, 2]), matrix(), tc.arange(8.0).reshape(2, 2, 2)):
        made = stack([x.to_sparse(), (2 * x).to_sparse()])
        assert made.is_sparse and made.to_dense().equal(stack([x, 2 * x]))
    with pytest.raises(NotImplementedError, match=name if name != "row_stack" else "stack"):
        stack([matrix().to_sparse_csr()] * 2)


def test_a_block_size_may_be_one_number():
    for make in (lambda b: matrix().to_sparse_bsr(b), lambda b: matrix().to_sparse_bsc(b),
                 lambda b: matrix().to_sparse(layout=tc.sparse_bsr, blocksize=b)):
        assert make(2).values().equal(make((2, 2)).values()) and make(2).values().shape == (1, 2, 2)


def test_blocks_whose_elements_need_more_bits_than_their_indices():
    indices = tc.tensor([2**30], dtype=tc.int32)
    x = tc.sparse_bsr_tensor(tc.tensor([0, 1], dtype=tc.int32), indices, tc.ones(1, 1, 4), (1, 2**33))
    assert x.to_sparse_coo().indices().tolist() == [[0] * 4, [2**32 + i for i in range(4)]]
    y = tc.sparse_bsc_tensor(tc.tensor([0, 1], dtype=tc.int32), indices, tc.ones(1, 4, 1), (2**33, 1))
    assert y.to_sparse_coo().indices().tolist() == [[2**32 + i for i in range(4)], [0] * 4]


def test_blocks_of_a_wide_matrix_take_memory_by_entries():
    wide = tc.sparse_csr_tensor([0, 4], [3, 4, 2**59 + 1, 2**60 - 1], [1.0, 2, 3, 4], (1, 2**60))
    made = wide.to_sparse_bsr((1, 2))
    assert made.col_indices().tolist() == [1, 2, 2**58, 2**59 - 1]
    assert made.values().flatten().tolist() == [0, 1, 2, 0, 0, 3, 0, 4]
    same_block = tc.sparse_csr_tensor([0, 2, 4], [6, 7, 6, 2**59], [1.0, 2, 3, 4], (2, 2**60)).to_sparse_bsr((2, 2))
    assert same_block.col_indices().tolist() == [3, 2**58] and same_block.values()[0].tolist() == [[1, 2], [3, 0]]


# ---- products with another reduction ----

def factors():
    return tc.tensor([[1.0, 2, 0], [0, 0, 0], [0, -3, 4]]).to_sparse_csr(), tc.tensor([[1.0, 2], [3, -4], [5, 6]])


@pytest.mark.parametrize("reduce, want, of_dense, of_values", [
    ("sum", [[7, -6], [0, 0], [11, 36]], [[1, 1], [-1, -1], [4, 4]], [3, -1, -1, 11]),
    ("mean", [[3.5, -3], [0, 0], [5.5, 18]], [[0.5, 0.5], [-0.5, -0.5], [2, 2]], [1.5, -0.5, -0.5, 5.5]),
    ("amax", [[6, 2], [0, 0], [20, 24]], [[0, 1], [2, 0], [4, 4]], [2, 3, 0, 11]),
    ("amin", [[1, -8], [0, 0], [-9, 12]], [[1, 0], [-3, -1], [0, 0]], [1, -4, -1, 0])])
def test_products_with_a_reduction(reduce, want, of_dense, of_values):
    """The numbers are PyTorch's."""
    x, dense = factors()
    x.requires_grad_(), dense.requires_grad_()
    y = tc.sparse.mm(x, dense, reduce)
    y.sum().backward()
    assert y.tolist() == want and dense.grad.tolist() == of_dense and x.grad.values().tolist() == of_values


@pytest.mark.parametrize("dtype", [tc.float64, tc.float16, tc.bfloat16])
def test_reductions_of_other_dtypes_and_of_nothing(dtype):
    x, dense = factors()
    x, dense = x.to(dtype), dense.to(dtype)
    assert tc.sparse.mm(x, dense, "amax").tolist() == [[6, 2], [0, 0], [20, 24]]
    assert tc.sparse.mm(x, dense[:, :0], "amin").shape == (3, 0)
    empty = tc.zeros(3, 3, dtype=dtype).to_sparse_csr()
    assert tc.sparse.mm(empty, dense, "mean").equal(tc.zeros(3, 2, dtype=dtype))
    assert tc.sparse.mm(empty, dense, "amax").equal(tc.zeros(3, 2, dtype=dtype))
    assert math.isnan(tc.sparse.mm(x, dense.masked_fill(dense == 6, math.nan), "amax")[2, 1])


@pytest.mark.parametrize("a, b, reduce, error, message", [
    (0, 1, "prod", RuntimeError, "sparse_mm_reduce: reduce type of prod has not been enabled."),
    (0, 1, "xx", RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got xx"),
    (1, 1, "sum", NotImplementedError, "expected mat1 of layout sparse_csr"),
    (0, 0, "sum", NotImplementedError, "mat2 of layout strided")])
def test_wrong_reductions(a, b, reduce, error, message):
    with pytest.raises(error, match=message):
        tc.sparse.mm(factors()[a], factors()[b], reduce)


# ---- resize_ ----

@pytest.mark.parametrize("sizes, offsets", [((3, 2), [0, 2, 3, 3]), ((2, 3), [0, 2, 3]), ((1, 2), [0, 2]), ((2, 2), [0, 2, 3]),
                                            ((4, 4), [0, 2, 3, 3, 3]), ((0, 2), [0])])
def test_a_csr_matrix_is_resized(sizes, offsets):
    x = matrix().to_sparse_csr()
    assert x.resize_(*sizes) is x and x.shape == sizes and x.crow_indices().tolist() == offsets
    assert x.values().tolist() == [1.0, 2, 3][:offsets[-1]] and x.col_indices().tolist() == [0, 1, 1][:offsets[-1]]


def test_wrong_sizes_of_a_csr_matrix():
    x = matrix().to_sparse_csr()
    with pytest.raises(RuntimeError, match="The original number of columns is 2 while the requested new number of columns is 1"):
        x.resize_(2, 1)
    with pytest.raises(RuntimeError, match="not negative"):
        x.resize_(-1, 2)
    with pytest.raises(RuntimeError, match="torch.resize_: Only batched sparse CSR matrices are supported, but got size .4."):
        x.resize_(4)
    with pytest.raises(RuntimeError, match="expected sizes of at most 1 matrices but got .2, 2, 2."):
        x.resize_(2, 2, 2)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        matrix().to_sparse_csr().requires_grad_().resize_(3, 3)
    with pytest.raises(NotImplementedError, match="resize_: not implemented for layout"):
        matrix().to_sparse().resize_(2, 2)
    assert x.shape == (2, 2)


def test_a_batch_is_resized():
    dense = tc.stack([matrix(), matrix() * 2, matrix() * 3])
    x = dense.to_sparse_csr()
    x.resize_(3, 4, 5)
    assert x.shape == (3, 4, 5) and x.to_dense()[:, :2, :2].tolist() == dense.tolist() and x._nnz() == 3
    x.resize_(2, 1, 5)
    assert x._nnz() == 2 and x.to_dense()[:, :, :2].tolist() == dense[:2, :1].tolist()
    x.resize_(1, 5)
    assert x.shape == (1, 5) and x.to_dense()[:, :2].tolist() == dense[0, :1].tolist()
    uneven = tc.stack([tc.tensor([[1.0, 2], [0, 0]]), tc.tensor([[1.0, 0], [0, 2]])]).to_sparse_csr()
    with pytest.raises(RuntimeError, match="expected as many entries in the first 1 rows of each matrix of a batch"):
        uneven.resize_(2, 1, 2)


@pytest.mark.parametrize("layout", [tc.sparse_csr, tc.sparse_csc, tc.sparse_bsr, tc.sparse_bsc])
def test_resize_as_sparse(layout):
    blocks = layout in (tc.sparse_bsr, tc.sparse_bsc)
    make = lambda d, side: d.to_sparse(layout=layout, **({"blocksize": side} if blocks else {}))  # noqa: E731
    x, other = make(tc.ones(2, 2).double(), 1), make(tc.ones(2, 4, 6), 2)
    assert x.resize_as_sparse_(other) is x
    assert x.shape == other.shape and x.dtype == tc.float64 and x.layout is layout
    assert x.values().shape == other.values().shape
    by_rows = layout in (tc.sparse_csr, tc.sparse_bsr)
    of = (lambda t: (t.crow_indices(), t.col_indices())) if by_rows else (lambda t: (t.ccol_indices(), t.row_indices()))
    assert [a.tolist() for a in of(x)] == [a.tolist() for a in of(other)]
    assert x.values().flatten()[:4].tolist() == [1.0] * 4
    assert of(x)[0].data_ptr() != of(other)[0].data_ptr()
    with pytest.raises(RuntimeError, match="resize_as_sparse_compressed_: src  expected sparse compressed tensor layout but got Strided"):
        x.resize_as_sparse_(tc.ones(2, 2))
    with pytest.raises(RuntimeError, match="resize_as_sparse_compressed_: self  expected sparse compressed tensor layout but got Sparse"):
        tc.ones(2, 2).to_sparse().resize_as_sparse_(x)
    with pytest.raises(RuntimeError, match="resize_as_sparse_compressed_tensor_: self and src must have the same layout"):
        x.resize_as_sparse_(x.mT)


# ---- out ----

@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_results_in_a_given_sparse_tensor(layout):
    x, out = matrix().to_sparse(layout=getattr(tc, layout)), tc.zeros(2, 2, layout=getattr(tc, layout))
    for function in (tc.add, tc.mul, tc.sub):
        assert function(x, x, out=out) is out and out.to_dense().equal(function(matrix(), matrix()))
    assert tc.add(x, x, alpha=2, out=out).to_dense().equal(3 * matrix())
    assert tc.sin(x, out=out) is out and out.to_dense().equal(matrix().sin())
    with pytest.raises(RuntimeError, match="out"):
        tc.add(x, x, out=tc.zeros(2, 2))
    with pytest.raises(RuntimeError, match="out"):
        tc.add(matrix(), matrix(), out=out)
    with pytest.raises(RuntimeError, match="can't be cast"):
        tc.add(x, x, out=tc.zeros(2, 2, layout=getattr(tc, layout), dtype=tc.int32))


# ---- errors in the user's words ----

@pytest.mark.parametrize("call, error, message", [
    (lambda: tc.sparse_coo_tensor([[0]], one(2.0)), RuntimeError,
     "expected values to be a dense tensor, but got values of layout Sparse"),
    (lambda: tc.sparse_coo_tensor(one(2.0), [1.0]), RuntimeError, "expected indices to be a dense tensor"),
    (lambda: tc.sparse_csr_tensor([0, 1], [0], one(2.0)), NotImplementedError, "sparse_compressed_tensor"),
    (lambda: tc.sparse_coo_tensor([[0]], [1.0], 5), TypeError, "argument 'size' must be tuple of ints, not int"),
    (lambda: tc.sparse_coo_tensor([[0]], [1.0], (5.0,)), TypeError, "but found element of type float at pos 0"),
    (lambda: tc.sparse_coo_tensor((5.0,)), TypeError, "but found element of type float at pos 0"),
    (lambda: tc.sparse_csr_tensor([0, 1], [0], [1.0], 5), TypeError, "argument 'size' must be tuple of ints, not int"),
    (lambda: tc.sparse_coo_tensor([[2**63 - 1]], [1.0]), RuntimeError, "index 9223372036854775807 for dim 0 is too large"),
    (lambda: tc.zeros(2**63 - 1, 1, layout=tc.sparse_csr), RuntimeError, "with 9223372036854775807 rows has more offsets"),
    (lambda: tc.zeros(3).to_sparse_csr(), RuntimeError, r"expected a tensor of at least 2 dimensions but got \[3\]"),
    (lambda: tc.ones_like(matrix().to_sparse()), NotImplementedError, "ones_like: not implemented for layout"),
    (lambda: tc.save({"w": matrix().to_mkldnn()}, io.BytesIO()), RuntimeError,
     r"^a tensor of layout \S+, which is a packed weight, cannot be saved .*convert it with to_dense\(\) first"),
    (lambda: matrix().to_mkldnn().__dlpack__(), BufferError, "which is a packed weight")])
def test_errors_name_what_the_user_gave(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert not str(caught.value).startswith("_") and "/tmp" not in str(caught.value)
