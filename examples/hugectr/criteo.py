"""
A network of fully connected layers in HugeCTR's language, on generated files of categorical features only:

    python -m tercel.hugectr examples/hugectr/criteo.py [--data norm | multi_slots]

Parquet files have 26 slots of one key; Norm files, as of 23.08, one slot of 100 keys, or ten slots of ten keys.
"""

import argparse

import hugectr
import numpy as np
from hugectr.tools import DataGenerator, DataGeneratorParams

Format = hugectr.DataReaderType_t
# Format, slots, keys of a slot, combiner.
LAYOUTS = {"parquet": (Format.Parquet, 26, 1, "sum"), "norm": (Format.Norm, 1, 100, "sum"),
           "multi_slots": (Format.Norm, 10, 10, "mean")}
parser = argparse.ArgumentParser()
parser.add_argument("--data", choices=LAYOUTS, default="parquet")
parser.add_argument("--iterations", type=int, default=1000)
parser.add_argument("--folder", default="criteo_data")
args = parser.parse_args()

SIZE, WIDTH = 60, 16
file_format, slots, nnz, combiner = LAYOUTS[args.data]
effects = np.random.default_rng(1).normal(size=(slots, SIZE))


def truth(dense, keys):
    """A sum of effects of the keys, of the same variance however many keys there are."""
    return 2 * sum(effects[slot, of].sum(axis=1) for slot, of in enumerate(keys)) / (slots * nnz) ** 0.5


sizes = [SIZE] * slots
check = hugectr.Check_t.Non if file_format is Format.Parquet else hugectr.Check_t.Sum
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=file_format, label_dim=1, dense_dim=0, num_slot=slots, i64_input_key=True, slot_size_array=sizes,
    nnz_array=[nnz] * slots, check_type=check, num_files=4, eval_num_files=1, num_samples_per_file=40000, **files),
    truth).generate()

solver = hugectr.CreateSolver(max_eval_batches=20, batchsize_eval=1000, batchsize=500, lr=0.002, vvgpu=[[0, 1]],
                              repeat_dataset=True, i64_input_key=True, seed=1)
reader = hugectr.DataReaderParams(data_reader_type=file_format, num_workers=4, slot_size_array=sizes, check_type=check,
                                  **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Local,
                                    beta1=0.9, beta2=0.999, epsilon=1e-7)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=0, dense_name="dense",
                        data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data", nnz, False, slots)]))
model.add(hugectr.SparseEmbedding(
    embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, workspace_size_per_gpu_in_mb=1,
    embedding_vec_size=WIDTH, combiner=combiner, sparse_embedding_name="embedding", bottom_name="data",
    optimizer=optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t
add(Layer.Reshape, ["embedding"], ["relu0"], leading_dim=slots * WIDTH)
for i in range(1, 4):
    add(Layer.InnerProduct, [f"relu{i - 1}"], [f"fc{i}"], num_output=50)
    add(Layer.ReLU, [f"fc{i}"], [f"relu{i}"])
add(Layer.InnerProduct, ["relu3"], ["logit"], num_output=1)
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.iterations, display=200, eval_interval=args.iterations, snapshot=1000000)
