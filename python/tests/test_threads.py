"""The number of threads may change at any time, also while another thread is inside an operation."""

import threading

import pytest

import tercel as tc
from tercel.nn import functional as F


@pytest.fixture
def changing_threads():
    before, done = tc.get_num_threads(), threading.Event()

    def change():
        count = 0
        while not done.is_set():
            count += 1
            tc.set_num_threads(1 + count % 8)

    thread = threading.Thread(target=change)
    thread.start()
    yield
    done.set()
    thread.join()
    tc.set_num_threads(before)


def test_results_do_not_depend_on_changes_of_the_number_of_threads(changing_threads):
    generator = tc.Generator().manual_seed(1)
    x = tc.randint(0, 1000, (200_000,), generator=generator)
    counts = tc.bincount(x, minlength=1000)
    position = tc.arange(len(x))
    images = tc.randint(0, 4, (8, 3, 12, 12), generator=generator).float()
    weight = tc.randint(0, 4, (5, 3, 3, 3), generator=generator).float().requires_grad_()
    gradient = None
    for _ in range(15):
        values, inverse, found = tc.unique(x, return_inverse=True, return_counts=True)
        assert (values[inverse] == x).all() and (found == counts[values]).all()
        ordered, places = tc.sort(x, stable=True)
        assert (ordered[1:] >= ordered[:-1]).all() and (x[places] == ordered).all()
        assert (places.sort().values == position).all()
        assert (tc.histc(x.float(), 1000, 0, 1000)[:999] == counts[:999].float()).all()
        (found_gradient,) = tc.autograd.grad(F.conv2d(images, weight).sum(), weight)
        assert gradient is None or (found_gradient == gradient).all()
        gradient = found_gradient
