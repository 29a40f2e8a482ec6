"""
Wide & Deep in HugeCTR's language, on generated Parquet files:

    python -m tercel.hugectr examples/hugectr/wdl.py

A wide part of two slots, a deep part of all others; the schema of HugeCTR's sample of this model.
"""

import argparse

import hugectr
from hugectr.tools import DataGenerator, DataGeneratorParams
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=600)
parser.add_argument("--folder", default="wdl_data")
args = parser.parse_args()

WIDE, DEEP, DENSE = 2, 8, 4
sizes = [40] * WIDE + [60] * DEEP
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Parquet, label_dim=1, dense_dim=DENSE, num_slot=WIDE + DEEP, i64_input_key=True,
    slot_size_array=sizes, num_files=4, eval_num_files=1, num_samples_per_file=10000, **files)).generate()

solver = hugectr.CreateSolver(max_eval_batches=10, batchsize_eval=1000, batchsize=500, lr=0.002, vvgpu=[[0]],
                              repeat_dataset=True, i64_input_key=True, seed=1)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Parquet, slot_size_array=sizes,
                                  check_type=hugectr.Check_t.Non, **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Local)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
                        data_reader_sparse_param_array=[
                            hugectr.DataReaderSparseParam("wide_data", 1, True, WIDE),
                            hugectr.DataReaderSparseParam("deep_data", 1, True, DEEP)]))
for name, bottom, width in (("wide", "wide_data", 1), ("deep", "deep_data", 8)):
    model.add(hugectr.SparseEmbedding(
        embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, workspace_size_per_gpu_in_mb=1,
        embedding_vec_size=width, combiner="sum", sparse_embedding_name=name, bottom_name=bottom, optimizer=optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t
add(Layer.Reshape, ["deep"], ["deep_flat"], leading_dim=8 * DEEP)
add(Layer.Reshape, ["wide"], ["wide_flat"], leading_dim=WIDE)
add(Layer.ReduceSum, ["wide_flat"], ["wide_sum"], axis=1)
add(Layer.Concat, ["deep_flat", "dense"], ["all"])
for i, (bottom, width) in enumerate((("all", 64), ("drop0", 32))):
    add(Layer.InnerProduct, [bottom], [f"fc{i}"], num_output=width)
    add(Layer.ReLU, [f"fc{i}"], [f"relu{i}"])
    add(Layer.Dropout, [f"relu{i}"], [f"drop{i}"], dropout_rate=0.1)
add(Layer.InnerProduct, ["drop1"], ["deep_out"], num_output=1)
add(Layer.Add, ["deep_out", "wide_sum"], ["logit"])
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.graph_to_json(f"{args.folder}/wdl.json")
model.fit(max_iter=args.iterations, display=200, eval_interval=args.iterations, snapshot=10000000,
          snapshot_prefix=f"{args.folder}/wdl")
print("ranks:", MPI.COMM_WORLD.Get_size())
