"""Compressed tensors in `.pt` files and pickles, of PyTorch too."""

import base64
import copy
import io
import pickle
import zlib

import pytest

import tercel as tc

# Written by torch.save() of PyTorch 2.15.
TORCH_FILE = zlib.decompress(base64.b64decode("""
eNrVmgt4W2UZx0+Ttuuybuuu7e6lY2u7bl1yct8YK2ELjAzWfgOtcxrSNDRxadP35Otgk2plJtsAdVOcwwsWb5vzBnjhIuoUwRsoqPMCU4aobCowRQWVId
/lND3nJF8uZHseOM+TnNPT8/7e//u+3+18bWfAXClJNTVS1jFHmijhhBKOBsOJ/kElkkxGelf2hnCofXBb3O+rkrbQY8Q0DFJLt5kYhJMKVISZSXtwCMfi
SUtQifQMxeK9weRgSElGgjgykEwoFjCpjyUjSiwUj+0M4VhiwBLsi+BgPLQjMYQtYO6uI0z1MW5NHVSmoApBdYvAD3cQ3C5bYEJLS/cEgkiSJ0N9EajhJp
aNiYG+zfyeBSZ2V5BHrGDhEQwOwaSAGUNtV0AKmFMwOVCRgil7w+FEPB4JU5FJyyalN6JEetfFwkTl1FYEdRimIZgeJQ6jNVFOtMGM6KRADYaZXYHKABE9
i5Jm741Sg3oMDQjmcANVlT+eCOGMrLkMIsM8AqnEMJ/KIZAFFLKQQxZhaERwnmq+ObaTmDUFTIHKNCxOwfkIlmBYmoZmBGPVCUNr1BTNmdcwLEtBG4LlLb
oo7LCCCKjC0E4FVKVgJRVg5QJsGGQEdp2BAxw8bKcatosauLmBB4MXwSpd2OsSQz3xSCbu1YzihAt43GvUuC+klLWc0oHhIgS+qBrrxSlYh2A9Bn8aLkFw
KYu1hzSUDbljpb+6LAUBBBv1sbrg8iir/RVq7TdRp53caRcGhGCzzsANVxKDagxXdQXM1OBN1ODN3KAbw1sQbFENeDk98FZusJV5CFQETLvhbSQMU6BiN7
ydGwYxXI0gNBZeTwrCCHoxRNJwDYI+NbwwREXhhSGWgncg2KYPzwtxHl6/Gt4AVZvgTgcxAAIlY2CiLdgKSV4F3EU1pmCIWmznFtdiuA7Bjkx8zMIGO3n1
30l90LhIgNeThsACHOaW78LwbgQjYwG+JwU3INiF4b1pSCFId1fRAEM4HIXdJMTqFr0oGfbwHO7lLsxpuJGmMg03cfzNGN6H4P16Kzt8gFiRfrqvK1DD/e
4nsojVB7nVhzDcguDD+nAccICH8xHui1gd5Fa3cquPYvgYgo+zUMivd8MnUnAbgk9iGE3D7Qg+1V1NONEdPUqsFz6dIxonfIYX5bNqUT5HU3yI0w9j+DyC
I3oLF3yBa/qi2sG+RC2+zC2+guEOBHfqo3DDXdziq6wzBUxp+BotSBq+zq2+geFuBPeoUZCK3ZuC+xB8E8P9afgWgm+zksQGsF2G72iCUHvwhoHxYesod+
mB7/KwvqeG9QAV+X3u7kEMDyH4gSpStfDCD7nFj1SLH1OLn3CLhzE8guCnurBkK/yMWzyqWjxGLX7OLX6B4ZcIjvGQ0vCrFPwawW8w/DYNjyN4gnUIDMdJ
MMv1FZFt8DuO/b2KfZJiT3DsUxj+gOBpvYUMf+T5/ZNakT9Ti2e4xUkMpxD8RS/dDn/lHetv6vD2LLV4jls8j+E0gr8T6axU/0jBCwj+ieFfafg3ghdZLS
L9g3gHvJTdoGQH/IegKzD8l6IJ9X/062WOPoPhFQT/11s4FYlkgxhJWKkgV9ROSikmcklMFTM5M2ulklxhpYp8I6WamuhicikTMpiaccxEFWPJYCYxTC3D
TKYmTTTPaWUKuU4pU9n9OvbMNPKdVqazOzPIN6vaoDKTnASTPxkCQ/0RHFEsyiyKzs6PW5nNZZqxUq/KNKeUBlXmnIzMuUzCPOZ8/ni0KsajLOCYGqwsZB
haeWWRimnMYM5jmCaGWZyVNK9yPsdUYmWJqoZglqqY5gymhWFaGWYZTxodjpQ2lrTl7P4K9kw7S9pKdsdKvvcwexu52q3I7K59LJWK4siZJLtVcWaS5BpP
kluV5cnI8jKXqxh2tTFJdptyQSZJa8aTdKGKWZvBdDDMRQzjMybJLisXZ5K0bjxJ61WMPxPkJQxzKcNs0CTpMpakALu/kT1zOUvSFezOJvI91N4ZmFCzp/
XYmYcskkQ/ncJVcaO0PHtV3H5NQukP4eD2iJIka0S/r4Uvjos4bNT13c8f30VLQj9i14ul9hyu1eVtkCyj+wb6IwPY71tWtPctW1wOKmDttXCKZtuUV8Bc
yZUtoGcHjiToktjvk0vwO3bEYxjHI1RDas3Tc+h8WZ1XQ73kzP1WstLq99lKFzDGNannSvVMFd37VNtoA7luKKBosUCRze9bJBXpf+yoMJyN+sbOZo3Oph
fi7g5y3VFA52qBTtnvc7+G0qn6R9Zy1x3kM9JB9Vw589BNdGVaV0BPm0CP3e9rlkqsnzFv5hz1dDyz39FCrlsK6Joh0OXw+6ZKBdqPsT6F6kt1Hbr/vuFy
6ucsq370OL1WddLBTzXquY7Vs63n2dpGNvbl1zdPoM/l99VLRfY/bbsePfnckXL6n7uM/pevXtbmfSEr3TYooGuSQJfH75sg6fuPJvfj/Wi0Nf5EOfF7S4
i/wlAH6v/hrTdvKuy/QWoSjX9kSF4olebfeFAdN1pXHizc/hrI/CTQQQbi2VLe8Ut7ZNVh9Ss9u8ryL+fzn3v+yTcvnRqtqyrc/hoki0gPGWCrpeLmH9G4
Zi5yfipm/to2fOaGEXI9UiCeVaJ4yMDsks7O/JVrPjv2yGFnWfV3ll7/4tcfefqfq/j+V2j9IfqZ6px53YtHCs9feernLqd+9DDWcJR8jpLPCVa/6zssO8
uqnyd//Uxqe6a+Xh5Y31ZLrmsL+GoX+fKWtn4fq0WF6v+W2x+YWo5/2Vqq//HcU/93HphyV1n+baXHf676jyyfvf5T/vpd3H9k+9kb/4pfvzdIy0R6yHi8
VCqtftRv7MmmCHVUk/Er5fQri/yScba9xDzk8yOaP2XX+Pz5WuZf2Z09/56T9ut5g7Rf7+ur/dqtpbffc1E/u+2NUT+7/LqpX2YHrtj62S3U42O39V1VeP
+rWWrNsQHHUqD7Q3Yw1uv3LSlOgNVjc7g8HrvXY3M5vV6n1+512hwOp9Xmtcl2u8Nt89o9HreLqlzw+PCt4/sXFayUYzq1u5dzspQL/45vxGh3Iht1iNmT
pIIbn0aadltxsY62Pyctay/TCNTuEc7VAafXSnn2Jo0cbc+s13EO1Eqi/UUjRNtt9JCWySKIzQjRtnU95FEhRDZCtBtbesjVU0QQuxGi3YXSQ14SQhxGiH
arSA/ZN1UEcRoh2n0fPcRaJ4K4jBDtJo0eclgIcWcp0ezA6CEd00QQjxGi3UYxKBFCvEaIdg+kQd/YpgsbW1aT1e5k6Cl3iClZbVa7/6CnWGcIKVmNVvvW
r6ccFVOyWq323VxP2TdTSHHkGw8MEc0SUrLarfY9WE85LKZkNVzt26qe0jlbSMlqudr3UD3ltJiS1XS1b5N6ytZ6ISWr7WrfCfWU40KKbC2+RlsbhBRbvk
FbTzkppsj5Rm1Dq5sjpGS1Xe37jp7SOFdIybTd3O8s2uOgmOIsniLNE1JcxdeoQ0xxF1+jw2KKp/gadc4XUrzFR3RCSLFbi48oukBIsRUfUd1CISWr7WrX
unrKaC6KYGmnXYs261dii6RiV8mdgerq5arZQvMKzUJbf37Qws/3LBp7aamm/9kpDS8bf9npDFRVc5tm9jx/9lWsaRM1
"""))


def objects():
    d = tc.tensor([[1.0, 0, 2, 0], [0, 0, 3, 4]])
    indices = tc.tensor([0, 2, 3], dtype=tc.int32), tc.tensor([0, 1, 1], dtype=tc.int32)
    return {
        "csr": d.to_sparse_csr(), "csc": d.double().to_sparse_csc(), "bsr": d.to_sparse_bsr((1, 2)),
        "bsc": d.to_sparse_bsc((2, 2)), "batch": tc.stack([d, d]).to_sparse_csr(),
        "hybrid": tc.arange(8.0).reshape(2, 2, 2).to_sparse_csr(dense_dim=1),
        "int32": tc.sparse_csr_tensor(*indices, tc.tensor([1.0, 2, 3]), (2, 2)), "t": d.to_sparse_csr().t(),
        "empty": tc.empty(0, 3, layout=tc.sparse_csr), "p": tc.nn.Parameter(d.to_sparse_csr()),
        "r": d.to_sparse_csr().requires_grad_(),
    }


def indices_of(x):
    by_rows = x.layout in (tc.sparse_csr, tc.sparse_bsr)
    return (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())


def saved(value):
    file = io.BytesIO()
    tc.save(value, file)
    return file.getvalue()


READERS = {
    "torch's file": lambda: tc.load(io.BytesIO(TORCH_FILE)),
    "own file": lambda: tc.load(io.BytesIO(saved(objects()))),
    "pickle": lambda: pickle.loads(pickle.dumps(objects())),
    "copy": lambda: copy.deepcopy(objects()),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_layout_is_restored(reader):
    read = READERS[reader]()
    assert list(read) == list(objects())
    for name, want in objects().items():
        got = read[name]
        assert (got.layout, got.shape, got.dtype) == (want.layout, want.shape, want.dtype), name
        assert got.requires_grad == want.requires_grad and isinstance(got, tc.nn.Parameter) == (name == "p"), name
        assert (got.dense_dim(), got._nnz()) == (want.dense_dim(), want._nnz()), name
        for a, b in zip((*indices_of(got), got.detach().values()), (*indices_of(want), want.detach().values())):
            assert a.dtype == b.dtype and a.tolist() == b.tolist(), name


def test_a_batch_with_shared_indices_and_a_transposed_one():
    d = tc.ones(2, 3, 2, 2).to_sparse_csr()
    loaded = tc.load(io.BytesIO(saved([d.transpose(0, 1), d.transpose(2, 3)])))
    assert loaded[0].shape == (3, 2, 2, 2) and loaded[1].layout is tc.sparse_csc
    assert loaded[0].to_dense().tolist() == tc.ones(3, 2, 2, 2).tolist()


def test_unordered_rows_are_restored():
    x = tc.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2), check_invariants=False)
    assert tc.load(io.BytesIO(saved(x))).to_dense().tolist() == [[2.0, 1.0]]


@pytest.mark.parametrize("change, fault", [
    (lambda x: x.crow_indices().__setitem__(0, 1), "offset 1 at 0"),
    (lambda x: x.crow_indices().__setitem__(1, 3), "offset 3 at 1 after 0 for lines of 2"),
    (lambda x: x.crow_indices().__setitem__(1, 9), "offset 9 at 1 after 0 for lines of 2 and 2 entries"),
    (lambda x: x.crow_indices().__setitem__(2, 1), "offsets up to 1 for 2 entries"),
    (lambda x: x.col_indices().__setitem__(1, 2), "index 2 in a dimension of 2"),
    (lambda x: x.col_indices().__setitem__(0, -1), "index -1 in a dimension of 2"),
])
def test_wrong_indices_are_refused(change, fault):
    x = tc.tensor([[0.0, 1], [2, 0]]).to_sparse_csr()
    change(x)
    with pytest.raises(tc.DataError, match=fault):
        tc.load(io.BytesIO(saved(x)))
