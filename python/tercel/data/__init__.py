"""Datasets of the trainer: rows of labels, dense values and keys of categorical fields, read as batches of tensors.

    import tercel.data as td
    dataset = td.open_dataset("clicks")
    with dataset.batches("train", batch_size=2048, shuffle=True, seed=1) as reader:
        for batch in reader:
            step(batch.labels, batch.dense, batch["keys"].keys)
"""

from tercel.data import _arrow_libraries
from tercel.data.array_dataset import ArrayDataset
from tercel.data.arrow_dataset import ArrowDataset
from tercel.data.batch_reader import Batch, BatchReader, ReaderPosition, SparseBatch
from tercel.data.converting import convert
from tercel.data.dataset import Column, DataFile, DataPart, Dataset, Schema, Slot, open_dataset, open_files
from tercel.data.filesystems import register_filesystem
from tercel.data.making import (
    ConvertResult, FieldSummary, GenerateResult, convert_criteo, convert_csv, convert_dataset, convert_libffm,
    convert_libsvm, convert_like, convert_movielens, generate, verify_dataset)

_arrow_libraries.find()
del _arrow_libraries

__all__ = ["ArrayDataset", "ArrowDataset", "Batch", "BatchReader", "Column", "ConvertResult", "DataFile", "DataPart", "Dataset",
           "FieldSummary", "GenerateResult", "ReaderPosition", "Schema", "Slot", "SparseBatch", "convert", "convert_criteo",
           "convert_csv", "convert_dataset", "convert_libffm", "convert_libsvm", "convert_like",
           "convert_movielens", "generate", "open_dataset", "open_files", "register_filesystem",
           "verify_dataset"]
