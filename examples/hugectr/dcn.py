"""
Deep & Cross Network in HugeCTR's language, on generated Parquet files with the schema of Criteo's data:

    python -m tercel.hugectr examples/hugectr/dcn.py [--embedding localized] [--gpus 2] [--nodes 2]

For several nodes the network has seven layers, and check_type is not given, as in HugeCTR's sample.
"""

import argparse

import hugectr
from hugectr.tools import DataGenerator, DataGeneratorParams
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--embedding", choices=("distributed", "localized"), default="distributed")
parser.add_argument("--gpus", type=int, default=1)
parser.add_argument("--nodes", type=int, default=1)
parser.add_argument("--iterations", type=int, default=800)
parser.add_argument("--folder", default="dcn_data")
args = parser.parse_args()

SLOTS, DENSE, WIDTH = 26, 13, 8
Embedding = hugectr.Embedding_t
embedding_type = {"distributed": Embedding.DistributedSlotSparseEmbeddingHash,
                  "localized": Embedding.LocalizedSlotSparseEmbeddingHash}[args.embedding]
check = {"check_type": hugectr.Check_t.Non} if args.nodes == 1 else {}
sizes = [60] * SLOTS
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Parquet, label_dim=1, dense_dim=DENSE, num_slot=SLOTS, i64_input_key=True,
    slot_size_array=sizes, num_files=4, eval_num_files=1, num_samples_per_file=20000, **files)).generate()

solver = hugectr.CreateSolver(max_eval_batches=20, batchsize_eval=1000, batchsize=500, lr=0.002,
                              vvgpu=[list(range(args.gpus))] * args.nodes, repeat_dataset=True, i64_input_key=True,
                              seed=1)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Parquet, slot_size_array=sizes, **check,
                                  **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Global,
                                    beta1=0.9, beta2=0.999, epsilon=1e-7)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
                        data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data", 1, False, SLOTS)]))
model.add(hugectr.SparseEmbedding(
    embedding_type=embedding_type, workspace_size_per_gpu_in_mb=1, embedding_vec_size=WIDTH, combiner="sum",
    sparse_embedding_name="embedding", bottom_name="data", optimizer=optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t
add(Layer.Reshape, ["embedding"], ["flat"], leading_dim=SLOTS * WIDTH)
add(Layer.Concat, ["flat", "dense"], ["all"])
add(Layer.MultiCross, ["all"], ["cross"], num_layers=6)
bottom = "all"
for i in range(1, (2 if args.nodes == 1 else 7) + 1):
    add(Layer.InnerProduct, [bottom], [f"fc{i}"], num_output=64)
    add(Layer.ReLU, [f"fc{i}"], [f"relu{i}"])
    bottom = f"dropout{i}"
    add(Layer.Dropout, [f"relu{i}"], [bottom], dropout_rate=0.1)
add(Layer.Concat, [bottom, "cross"], ["both"])
add(Layer.InnerProduct, ["both"], ["logit"], num_output=1)
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.iterations, display=200, eval_interval=args.iterations, snapshot=1000000,
          snapshot_prefix=f"{args.folder}/dcn")
print("ranks:", MPI.COMM_WORLD.Get_size())
