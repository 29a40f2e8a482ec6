"""The session of the notes on torch.Storage (seed 003), with what Tercel prints.

>>> import tercel as t
>>> a = t.arange(0, 6)
>>> a.storage()
 0
 1
 2
 3
 4
 5
[tercel.LongStorage of size 6]

A view has the same storage, and the same object stands for it:

>>> b = a.view(2, 3)
>>> b.storage()
 0
 1
 2
 3
 4
 5
[tercel.LongStorage of size 6]
>>> id(a.storage()) == id(b.storage())
True
>>> a[1] = 100
>>> b
tensor([[  0, 100,   2],
        [  3,   4,   5]])

So has a slice, which begins two elements of 8 bytes later:

>>> c = a[2:]
>>> c.storage()
 0
 100
 2
 3
 4
 5
[tercel.LongStorage of size 6]
>>> c.data_ptr() - a.data_ptr()
16
>>> a.dtype
tercel.int64
>>> c[0] = -100
>>> a
tensor([   0,  100, -100,    3,    4,    5])

Tensor() is the tensor of the default dtype. The notes' error named types by numbers ("6 but got data type 4"):

>>> d = t.Tensor(c.storage())
Traceback (most recent call last):
    ...
RuntimeError: Expected a Storage of type Float or an UntypedStorage, but got type Long for argument 1 'storage'
>>> dtypea = t.FloatTensor([[1, 2, 3], [4, 5, 6]])
>>> dtypea.storage()
 1.0
 2.0
 3.0
 4.0
 5.0
 6.0
[tercel.FloatStorage of size 6]
>>> d = t.Tensor(dtypea.storage())
>>> d[0] = 6666
>>> dtypea
tensor([[6.6660e+03, 2.0000e+00, 3.0000e+00],
        [4.0000e+00, 5.0000e+00, 6.0000e+00]])
>>> for other in (t.IntTensor, t.ShortTensor, t.CharTensor, t.ByteTensor, t.DoubleTensor):
...     try:
...         t.Tensor(other([1, 2]).storage())
...     except RuntimeError as error:
...         print(error)
Expected a Storage of type Float or an UntypedStorage, but got type Int for argument 1 'storage'
Expected a Storage of type Float or an UntypedStorage, but got type Short for argument 1 'storage'
Expected a Storage of type Float or an UntypedStorage, but got type Char for argument 1 'storage'
Expected a Storage of type Float or an UntypedStorage, but got type Byte for argument 1 'storage'
Expected a Storage of type Float or an UntypedStorage, but got type Double for argument 1 'storage'

The same from the start with numbers of that type. A tensor of a storage begins where the storage does:

>>> a = t.arange(0, 6).float()
>>> b, c = a.view(2, 3), a[2:]
>>> a[1] = 100
>>> c[0] = -100
>>> d = t.Tensor(c.storage())
>>> d[0] = 6666
>>> b
tensor([[ 6.6660e+03,  1.0000e+02, -1.0000e+02],
        [ 3.0000e+00,  4.0000e+00,  5.0000e+00]])
>>> id(a.storage()) == id(b.storage()) == id(c.storage()) == id(d.storage())
True
>>> a.storage_offset(), c.storage_offset(), d.storage_offset()
(0, 2, 0)
>>> e = b[::2, ::2]
>>> print(e)
tensor([[6666., -100.]])
>>> print(e.storage_offset())
0
>>> id(e.storage()) == id(a.storage())
True
>>> b.stride(), e.stride()
((3, 1), (6, 2))
>>> b.is_contiguous(), e.is_contiguous()
(True, False)
>>> e.contiguous().is_contiguous()
True

contiguous() copies what it has to, into memory of its own:

>>> before = e.data_ptr()
>>> f = e.contiguous()
>>> f.data_ptr() == before
False
>>> print(f)
tensor([[6666., -100.]])
>>> print(f.storage())
 6666.0
 -100.0
[tercel.FloatStorage of size 2]
>>> print(f.size())
tercel.Size([1, 2])
>>> e.data_ptr() == before
True
>>> f.is_contiguous()
True

view() needs strides that fit. The sentence is that of today's PyTorch; the notes' ended "Call .contiguous() before .view().":

>>> k = t.arange(0, 6).view(2, 3).float().t()
>>> k.is_contiguous()
False
>>> k.view(-1)
Traceback (most recent call last):
    ...
RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans across two \
contiguous subspaces). Use .reshape(...) instead.
>>> k.contiguous().view(-1)
tensor([0., 3., 1., 4., 2., 5.])
"""

import doctest
import sys


def test_session():
    result = doctest.testmod(sys.modules[__name__])
    assert result.attempted > 40 and result.failed == 0
