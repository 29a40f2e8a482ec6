"""
Writes golden files of the present version: datasets of each format, runs, and what is read from them.

    PYTHONPATH=build/release/python python3 python/tests/golden/make.py python/tests/golden/NAME

They are made once for a version of the formats and never again: test_golden.py checks that later versions read them.
"""

import csv
import json
import os
import random
import sys

import tercel.data as td
import tercel.recsys as tr

FORMATS = ("norm", "raw", "rawasync", "parquet")
LAYERS = [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "categories"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "categories", "top": "embedding",
     "sparse_embedding_hparam": {"embedding_vec_size": 4}},
    {"type": "Reshape", "bottom": "embedding", "top": "flat"},
    {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
    {"type": "BatchNorm", "bottom": "all", "top": "norm"},
    {"type": "InnerProduct", "bottom": "norm", "top": "hidden", "fc_param": {"num_output": 8}},
    {"type": "ReLU", "bottom": "hidden", "top": "relu"},
    {"type": "InnerProduct", "bottom": "relu", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]
RUNS = {"static": ("static", {"type": "AdaGrad"}), "hashed": ("hashed", {"type": "Adam"})}


def write_table(path):
    """160 clicks with two numbers, a user and a list of genres."""
    draw = random.Random(1)
    with open(path, "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["click", "price", "age", "user", "device", "genres"])
        for _ in range(160):
            user, genres = draw.randrange(12), draw.sample(["war", "drama", "comedy", "action"], draw.randrange(3))
            click = int(draw.random() < (0.8 if (user + len(genres)) % 3 == 0 else 0.2))
            rows.writerow([click, f"{draw.random() * 10:.2f}", draw.randrange(18, 70), f"u{user}",
                           draw.choice(["phone", "desk"]), "|".join(genres)])


def convert(table, folder, categorical, **options):
    return td.convert_csv(table, folder, label="click", dense=["price", "age"], categorical=categorical, min_count=1,
                          test_every=5, **options).dataset


def config_of(run):
    """The configuration of a run."""
    table, optimizer = RUNS[run]
    layers = json.loads(json.dumps(LAYERS))
    layers[1]["sparse_embedding_hparam"]["table_type"] = table
    return {"model_name": run, "optimizer": optimizer, "layers": layers,
            "solver": {"batchsize": 32, "lr": 0.05, "epochs": 2, "keep_checkpoints": 1, "eval_interval": 4}}


def contents_of(dataset):
    """Every row of both parts, read in batches of 50."""
    return {part: [{"labels": batch.labels.reshape(-1).tolist(), "dense": batch.dense.reshape(-1).tolist(),
                    "keys": batch["keys"].keys.tolist(), "offsets": batch["keys"].row_offsets.tolist()}
                   for batch in dataset.batches(part, batch_size=50)] for part in ("train", "test")}


def main(folder):
    os.makedirs(folder)
    os.chdir(folder)  # descriptions name their sources
    write_table("clicks.csv")
    expected = {"datasets": {}, "runs": {}}
    lists = convert("clicks.csv", "lists", ["user", "genres"], list_separator="|", lists=["genres"])
    flat = convert("clicks.csv", "norm", ["user", "device"])
    for to in FORMATS[1:]:
        td.convert_dataset(flat, to, to)
    for name in ("lists", *FORMATS):
        expected["datasets"][name] = contents_of(td.open_dataset(name))
    for run in RUNS:
        with tr.Trainer(config_of(run), lists, os.path.join("runs", run)) as trainer:
            trainer.run()
            expected["runs"][run] = {"step": trainer.result.best_step, "last_step": trainer.step,
                                     "test": trainer.result.test}
        model = tr.load_model(os.path.join("runs", run))
        expected["runs"][run]["predictions"] = model.predict_text("clicks.csv").tolist()
    with open("expected.json", "w") as file:
        json.dump(expected, file)


if __name__ == "__main__":
    main(sys.argv[1])
