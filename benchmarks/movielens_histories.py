#!/usr/bin/env python3
"""Writes MovieLens 100k for models of histories: train.parquet, valid.parquet and test.parquet in the folder OUT.

A row is a rating, in the order of time, with its user, its item, and the last 20 items that the user had rated 4 or 5
before; the label is whether the rating is 4 or 5. The last tenth is the test part, the tenth before it the validation
part. U_DATA is u.data of https://grouplens.org/datasets/movielens/100k/, plain or gzip. Needs pyarrow.
"""
import argparse
import collections
import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LAST = 20
FIRST_USER = 100_000  # one table has the keys of users and items: above those of all items


def read_ratings(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="ascii") as file:
        ratings = [tuple(map(int, line.split())) for line in file]
    return sorted(ratings, key=lambda rating: (rating[3], rating[0], rating[1]))


def rows_of(ratings):
    liked = collections.defaultdict(list)
    columns = {"label": [], "user": [], "item": [], "history": []}
    for user, item, rating, _ in ratings:
        columns["label"].append(float(rating >= 4))
        columns["user"].append(FIRST_USER + user)
        columns["item"].append(item)
        columns["history"].append(liked[user][-LAST:])
        if rating >= 4:
            liked[user].append(item)
    return pa.table(columns, pa.schema([("label", pa.float32()), ("user", pa.int64()), ("item", pa.int64()),
                                        ("history", pa.list_(pa.int64()))]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("u_data", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    rows = rows_of(read_ratings(options.u_data))
    os.makedirs(options.out, exist_ok=True)
    tenth = rows.num_rows // 10
    bounds = {"train": (0, rows.num_rows - 2 * tenth), "valid": (rows.num_rows - 2 * tenth, rows.num_rows - tenth),
              "test": (rows.num_rows - tenth, rows.num_rows)}
    for part, (first, end) in bounds.items():
        pq.write_table(rows.slice(first, end - first), options.out / f"{part}.parquet")


if __name__ == "__main__":
    main()
