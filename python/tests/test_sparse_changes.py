"""In-place changes of compressed tensors: views that see them, refusals, and optimizers."""

import pytest
from test_sparse_compressed import ELEMENTS, LAYOUTS, csr, in_layout

import tercel as tc


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_transposes_and_values_see_changes(layout, batch):
    dense = tc.tensor(ELEMENTS).expand(*batch, 2, 4).contiguous()
    x = in_layout(dense, layout)
    views = [x.mT, x.transpose(-1, -1), x.mT.mT] + ([x.transpose(0, 1)] if len(batch) == 2 else [])
    values = x.values()
    before = values.clone()
    for view in views:
        assert view._is_view() and view._base is x
    assert values._is_view()
    x.mul_(2)
    x.abs_()
    assert values.tolist() == (before * 2).tolist()
    views[0].mul_(3)
    assert x.to_dense().tolist() == (dense * 6).tolist()
    assert views[2].to_dense().tolist() == (dense * 6).tolist()
    if len(batch) == 2:
        assert views[3].shape == (3, 2, 2, 4)
        assert views[3].to_dense().tolist() == (dense * 6).transpose(0, 1).tolist()
    x.copy_(in_layout(dense, layout))
    assert views[1].to_dense().tolist() == dense.tolist()
    x.zero_()
    assert values.count_nonzero() == 0 and x._nnz() == in_layout(dense, layout)._nnz()


def test_a_change_that_backward_needs_through_a_transpose_is_an_error():
    x, w = csr(values=(1.0, 2.0, 3.0)), tc.ones(2, 1, requires_grad=True)
    y = x.t() @ w
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    leaf = csr(values=(1.0, 2.0, 3.0))
    turned = leaf.t()
    leaf.requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        turned.mul_(2)


@pytest.mark.parametrize("call, text", [
    (lambda d: d.expand(2, 2, 4).to_sparse_csr().transpose(0, 2),
     "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got 0(Batch) and 2(Sparse)"),
    (lambda d: d.unsqueeze(-1).to_sparse_csr(dense_dim=1).transpose(0, 1),
     "transpose(): hybrid sparse compressed tensors with dense dimensions are not supported"),
    (lambda d: d.to_sparse_csr().is_contiguous(), "Sparse CSR tensors do not have is_contiguous"),
    (lambda d: d.to_sparse_bsc((1, 2)).is_contiguous(), "Sparse BSC tensors do not have is_contiguous"),
    (lambda d: d.to_sparse_csr().to(tc.complex64).abs_(), "In-place abs is not supported for complex tensors."),
])
def test_refused_views_and_changes(call, text):
    with pytest.raises(RuntimeError) as caught:
        call(tc.tensor(ELEMENTS))
    assert text in str(caught.value)


# ---- optimizers ----

@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"weight_decay": 0.1},
                                     {"maximize": True}])
def test_sgd_updates_compressed_parameters(layout, options):
    dense = tc.tensor(ELEMENTS)
    p, q = tc.nn.Parameter(in_layout(dense, layout)), tc.nn.Parameter(dense.clone())
    sgd = [tc.optim.SGD([x], lr=0.1, **options) for x in (p, q)]
    for _ in range(3):
        p.grad, q.grad = in_layout(dense * 0.5, layout), dense * 0.5
        for optimizer in sgd:
            optimizer.step()
    assert p.layout is layout and p.is_leaf
    tc.testing.assert_close(p.detach().to_dense(), q.detach())


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"])
def test_other_optimizers_refuse_compressed_parameters(name):
    p, q = tc.nn.Parameter(csr(values=(1.0, 2.0, 3.0))), tc.nn.Parameter(tc.ones(2))
    optimizer = getattr(tc.optim, name)([q, p])
    p.grad, q.grad = csr(values=(1.0, 2.0, 3.0)), tc.ones(2)
    with pytest.raises(RuntimeError, match="unsupported tensor layout: SparseCsr"):
        optimizer.step()
    assert q.tolist() == [1.0, 1.0]
