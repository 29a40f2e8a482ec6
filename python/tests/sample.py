"""An example of a type-checked user program; test_package.py runs mypy on it."""

from typing import Tuple

import tercel as tc


def norm_of_rows(x: tc.Tensor, scale: float = 1.0) -> tc.Tensor:
    squares = (x * x).sum(dim=1, keepdim=True)
    return tc.sqrt(squares) * scale


def sizes(x: tc.Tensor) -> Tuple[int, ...]:
    return tuple(x.shape)


y = norm_of_rows(tc.arange(6, dtype=tc.float32).view(2, 3))
z: tc.Tensor = tc.add(y, 1, alpha=2).reshape(-1)[0]
value = float(z)


def exchange(x: tc.Tensor, path: str) -> tc.Tensor:
    tc.save({"x": x}, path)
    tc.safetensors.save_file({"x": x}, path)
    tc.io.save_npy(path, x)
    return tc.from_dlpack(tc.safetensors.load_file(path)["x"])


def rows_of(path: str) -> int:
    dataset = tc.data.open_dataset(path)
    count = 0
    with dataset.batches("train", batch_size=10, shuffle=True, inputs={"a": 1}, bag_order="slot_major") as reader:
        for batch in reader:
            offsets: tc.Tensor = batch["a"].row_offsets
            count += batch.rows + int(offsets[0].item())
    tc.data.generate(path, rows=10, key_type="u32").dataset.train.files[0].path.upper()
    return count + len(dataset.schema.slots)


class Squares(tc.utils.data.Dataset[int]):
    def __getitem__(self, index: int) -> int:
        return index * index

    def __len__(self) -> int:
        return 9


def first_batch(workers: int) -> tc.Tensor:
    train, _ = tc.utils.data.random_split(Squares(), [6, 3])
    sampler = tc.utils.data.WeightedRandomSampler([1.0] * len(train), 4)
    for batch in tc.utils.data.DataLoader(train, batch_size=2, sampler=sampler, num_workers=workers):
        return tc.as_tensor(batch)
    return tc.empty(0)
