"""
Wide & Deep in HugeCTR's language, on generated files with the schema of Criteo's data:

    python -m tercel.hugectr examples/hugectr/wdl.py [--gpus 8] [--format norm]

In Parquet files the wide part has two slots, crosses of two features; in Norm files, as of 23.08, one slot of many
keys. For eight GPUs the deep embedding is Localized and the network has seven layers.
"""

import argparse

import hugectr
from hugectr.tools import DataGenerator, DataGeneratorParams
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--gpus", type=int, choices=(1, 8), default=1)
parser.add_argument("--format", choices=("parquet", "norm"), default="parquet")
parser.add_argument("--iterations", type=int, default=1000)
parser.add_argument("--folder", default="wdl_data")
args = parser.parse_args()

DEEP, DENSE, WIDTH = 26, 13, 8
Format, Embedding = hugectr.DataReaderType_t, hugectr.Embedding_t
if args.format == "parquet":
    file_format, check, wide, wide_nnz, deep_nnz = Format.Parquet, hugectr.Check_t.Non, 2, 1, 1
else:
    file_format, check, wide, wide_nnz, deep_nnz = Format.Norm, hugectr.Check_t.Sum, 1, 30, 2
sizes = [40] * wide + [60] * DEEP
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=file_format, label_dim=1, dense_dim=DENSE, num_slot=wide + DEEP, i64_input_key=True, slot_size_array=sizes,
    nnz_array=[wide_nnz] * wide + [deep_nnz] * DEEP, check_type=check, num_files=4, eval_num_files=1,
    num_samples_per_file=40000, **files)).generate()

solver = hugectr.CreateSolver(max_eval_batches=20, batchsize_eval=1000, batchsize=500, lr=0.002,
                              vvgpu=[list(range(args.gpus))], repeat_dataset=True, i64_input_key=True, seed=1)
reader = hugectr.DataReaderParams(data_reader_type=file_format, num_workers=4, slot_size_array=sizes, check_type=check,
                                  **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Local)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
                        data_reader_sparse_param_array=[
                            hugectr.DataReaderSparseParam("wide_data", wide_nnz, False, wide),
                            hugectr.DataReaderSparseParam("deep_data", deep_nnz, False, DEEP)]))
distributed, localized = Embedding.DistributedSlotSparseEmbeddingHash, Embedding.LocalizedSlotSparseEmbeddingHash
for name, bottom, embedding_type, width in (
        ("wide", "wide_data", distributed, 1),
        ("deep", "deep_data", distributed if args.gpus == 1 else localized, WIDTH)):
    model.add(hugectr.SparseEmbedding(
        embedding_type=embedding_type, workspace_size_per_gpu_in_mb=1, embedding_vec_size=width, combiner="sum",
        sparse_embedding_name=name, bottom_name=bottom, optimizer=optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t
add(Layer.Reshape, ["deep"], ["deep_flat"], leading_dim=WIDTH * DEEP)
add(Layer.Reshape, ["wide"], ["wide_flat"], leading_dim=wide)
add(Layer.ReduceSum, ["wide_flat"], ["wide_sum"], axis=1)
add(Layer.Concat, ["deep_flat", "dense"], ["all"])
bottom = "all"
for i in range(1, (2 if args.gpus == 1 else 7) + 1):
    add(Layer.InnerProduct, [bottom], [f"fc{i}"], num_output=64)
    add(Layer.ReLU, [f"fc{i}"], [f"relu{i}"])
    bottom = f"dropout{i}"
    add(Layer.Dropout, [f"relu{i}"], [bottom], dropout_rate=0.1)
add(Layer.InnerProduct, [bottom], ["deep_out"], num_output=1)
add(Layer.Add, ["deep_out", "wide_sum"], ["logit"])
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.graph_to_json(f"{args.folder}/wdl.json")
model.fit(max_iter=args.iterations, display=200, eval_interval=args.iterations, snapshot=10000000,
          snapshot_prefix=f"{args.folder}/wdl")
print("ranks:", MPI.COMM_WORLD.Get_size())
