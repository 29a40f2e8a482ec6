"""tercel.data.verify_dataset() of Parquet files: damaged row groups, and _metadata.json."""

import json
import pathlib

import pytest
from test_parquet import describe, draw_table

import tercel.data as td

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def test_every_damaged_row_group_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    table = draw_table(6000, lists=False)
    labels = table["click"].to_numpy().copy()
    labels[10] = 7
    table = table.set_column(0, "click", pa.array(labels))
    pq.write_table(table, path, row_group_size=1000, write_page_checksum=True, use_dictionary=False)
    dataset = describe(path, dense=["age"], categorical=["user"])
    metadata = pq.ParquetFile(path).metadata
    data = bytearray(path.read_bytes())
    for group in (1, 3, 5):
        data[metadata.row_group(group).column(3).data_page_offset + 100] ^= 1
    path.write_bytes(data)
    faults = td.verify_dataset(dataset, max_faults=100)
    groups = ["row group 0: row 10: column 'click'", "row group 1: ", "row group 3: ", "row group 5: "]
    assert len(faults) == 4
    for fault, expected in zip(faults, groups):
        assert f"a.parquet: {expected}" in fault


def test_metadata_that_was_written_is_verified(tmp_path):
    dataset = td.generate(tmp_path / "data", preset="small", rows=500, seed=1, format="parquet").dataset
    assert td.verify_dataset(dataset, max_faults=100) == []
    path = pathlib.Path(dataset.folder) / "train" / "_metadata.json"
    good = path.read_text()

    def faults(text):
        path.write_text(text)
        return td.verify_dataset(dataset, max_faults=100)

    changed = json.loads(good)
    changed["file_stats"][0]["num_rows"] += 1
    (fault,) = faults(json.dumps(changed))
    assert "_metadata.json: file_stats: 'part-0.parquet': expected num_rows" in fault
    changed = json.loads(good)
    changed["cats"][0]["index"] = changed["conts"][0]["index"]
    (fault,) = faults(json.dumps(changed))
    assert "_metadata.json: expected the indices of the labels, dense values and slots" in fault
    (fault,) = faults(good[:20])
    assert "_metadata.json" in fault
    path.unlink()
    (fault,) = td.verify_dataset(dataset, max_faults=100)
    assert "_metadata.json: expected the file that HugeCTR reads beside the data files, found none" in fault
