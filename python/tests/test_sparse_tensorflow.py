"""tercel.sparse.tensorflow: sparse tensors in TensorFlow's form."""

import pytest

import tercel as tc
from tercel.sparse import tensorflow as tf


def test_the_example():
    x = tf.SparseTensor(indices=[[0, 0], [1, 1], [2, 2]], values=[1.0, 2.0, 3.0], dense_shape=[3, 3])
    assert repr(x) == ("SparseTensor(indices=tensor([[0, 0],\n        [1, 1],\n        [2, 2]]), "
                       "values=tensor([1., 2., 3.]), dense_shape=tensor([3, 3]))")
    assert tf.to_dense(x, default_value=0).tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
    assert x.to_dense(-1).tolist()[0] == [1, -1, -1]
    assert x.shape == (3, 3) and x.dtype is tc.float32 and x.indices.shape == (3, 2)


def test_order_and_duplicates():
    x = tf.SparseTensor([[1, 0], [0, 2], [1, 0]], tc.tensor([5, 6, 7]), (2, 3))
    with pytest.raises(RuntimeError, match=r"indices\[1\] = \[0, 2\] is out of order. Many sparse ops require sorted"):
        x.to_dense()
    ordered = tf.reorder(x)
    assert ordered.indices.tolist() == [[0, 2], [1, 0], [1, 0]] and ordered.values.tolist() == [6, 5, 7]
    with pytest.raises(RuntimeError, match=r"indices\[2\] = \[1, 0\] is repeated"):
        ordered.to_dense()
    assert x.to_dense(validate_indices=False).tolist() == [[0, 0, 6], [7, 0, 0]]
    assert x.to_coo().to_dense().tolist() == [[0, 0, 6], [12, 0, 0]]
    with pytest.raises(IndexError):
        tf.SparseTensor([[0, 3]], [1], (2, 3)).reorder()


def test_to_and_from_coo():
    x = tc.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [1.0, 2.0, 3.0], (2, 3))
    form = tf.SparseTensor.from_coo(x)
    assert form.indices.tolist() == [[0, 0], [1, 2]] and form.values.tolist() == [2, 4]
    assert tc.equal(form.to_dense(), x.to_dense()) and tc.equal(form.to_coo().to_dense(), x.to_dense())
    empty = tf.SparseTensor([], tc.zeros(0), (2, 2))
    assert empty.to_dense(3).tolist() == [[3, 3], [3, 3]]
    with pytest.raises(RuntimeError, match="expected a COO tensor without dense dimensions"):
        tf.SparseTensor.from_coo(tc.ones(2, 2).to_sparse(1))
    with pytest.raises(RuntimeError, match=r"expected values of sizes \[1\]"):
        tf.SparseTensor([[0, 0]], [1.0, 2.0], (2, 2))
