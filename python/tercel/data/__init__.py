"""Datasets of the trainer: rows of labels, dense values and keys of categorical fields, read as batches of tensors.

    import tercel.data as td
    dataset = td.open_dataset("clicks")
    with dataset.batches("train", batch_size=2048, shuffle=True, seed=1) as reader:
        for batch in reader:
            step(batch.labels, batch.dense, batch["keys"].keys)
"""

from tercel.data.array_dataset import ArrayDataset
from tercel.data.batch_reader import Batch, BatchReader, ReaderPosition, SparseBatch
from tercel.data.dataset import Column, DataFile, DataPart, Dataset, Schema, Slot, open_dataset, open_files
from tercel.data.making import (
    ConvertResult, GenerateResult, convert_criteo, convert_csv, convert_dataset, generate, verify_dataset)

__all__ = ["ArrayDataset", "Batch", "BatchReader", "Column", "ConvertResult", "DataFile", "DataPart", "Dataset",
           "GenerateResult", "ReaderPosition", "Schema", "Slot", "SparseBatch", "convert_criteo", "convert_csv",
           "convert_dataset", "generate", "open_dataset", "open_files", "verify_dataset"]
