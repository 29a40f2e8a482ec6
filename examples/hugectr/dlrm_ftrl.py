"""
DLRM in HugeCTR's language, on generated RawAsync files of one key a slot: a collection of tables, one lookup for each,
and SGD or Ftrl.

    python -m tercel.hugectr examples/hugectr/dlrm_ftrl.py [--optimizer ftrl] [--shard_plan hybrid]

With the beta, lambda1 and lambda2 of HugeCTR's sample, 0.9, 0.1 and 0.1, Ftrl makes all weights of this network 0.
"""

import argparse

import hugectr
from hugectr.tools import DataGenerator, DataGeneratorParams
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--use_mixed_precision", action="store_true")
parser.add_argument("--shard_plan", choices=("round_robin", "uniform", "hybrid"), default="round_robin")
parser.add_argument("--use_dynamic_hash_table", action="store_true")
parser.add_argument("--optimizer", choices=("ftrl", "sgd"), default="sgd")
parser.add_argument("--beta", type=float, default=0.0)
parser.add_argument("--lambda1", type=float, default=1e-6)
parser.add_argument("--lambda2", type=float, default=1e-6)
parser.add_argument("--iterations", type=int, default=2000)
parser.add_argument("--folder", default="dlrm_ftrl_data")
args = parser.parse_args()

SLOTS, DENSE, WIDTH = 48, 13, 8
# Tables of at most this many rows are on every GPU in the plan "hybrid".
SMALL = 10
sizes = [5 + slot % 4 * 5 for slot in range(SLOTS)]
rows = dict(num_samples=160000, eval_num_samples=20000)
files = dict(source=f"{args.folder}/train.bin", eval_source=f"{args.folder}/eval.bin")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.RawAsync, label_dim=1, dense_dim=DENSE, num_slot=SLOTS, i64_input_key=True,
    slot_size_array=sizes, float_label_dense=True, **rows, **files)).generate()

NODES = MPI.COMM_WORLD.Get_size()
GPUS = 8 * NODES
# Ftrl's weights are sums of past gradients times the present rate: a rate that rises makes all of them larger.
lr, warmup = (0.3, 100) if args.optimizer == "sgd" else (0.01, 1)
solver = hugectr.CreateSolver(
    max_eval_batches=20, batchsize_eval=1000, batchsize=500, lr=lr, warmup_steps=warmup,
    use_mixed_precision=args.use_mixed_precision, vvgpu=[list(range(8))] * NODES,
    repeat_dataset=True, i64_input_key=True, use_embedding_collection=True, seed=1,
    metrics_spec={hugectr.MetricsType.AverageLoss: 0.0, hugectr.MetricsType.AUC: 1.0})
reader = hugectr.DataReaderParams(
    data_reader_type=hugectr.DataReaderType_t.RawAsync, check_type=hugectr.Check_t.Non, cache_eval_data=1,
    slot_size_array=sizes,
    async_param=hugectr.AsyncParam(num_threads=1, num_batches_per_thread=16, shuffle=False, multi_hot_reader=True,
                                   is_dense_float=True), **rows, **files)
if args.optimizer == "ftrl":
    optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Ftrl, update_type=hugectr.Update_t.Global,
                                        beta=args.beta, lambda1=args.lambda1, lambda2=args.lambda2)
else:
    optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.SGD, update_type=hugectr.Update_t.Local,
                                        atomic_update=True)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
                        data_reader_sparse_param_array=[
                            hugectr.DataReaderSparseParam(f"data{slot}", 1, False, 1) for slot in range(SLOTS)]))
collection = hugectr.EmbeddingCollectionConfig(use_exclusive_keys=True)
for slot, size in enumerate(sizes):
    table = hugectr.EmbeddingTableConfig(name=str(slot), ev_size=WIDTH,
                                         max_vocabulary_size=-1 if args.use_dynamic_hash_table else size)
    collection.embedding_lookup(table_config=table, bottom_name=f"data{slot}", top_name=f"vector{slot}",
                                combiner="sum")
# Tables that are whole, each on one GPU in turn, and tables that are on every GPU.
whole = {"round_robin": range(SLOTS), "uniform": (), "hybrid": [i for i in range(SLOTS) if sizes[i] > SMALL]}
spread = [str(slot) for slot in range(SLOTS) if slot not in whole[args.shard_plan]]
placed = [str(slot) for slot in whole[args.shard_plan]]
strategy = {"round_robin": [("mp", placed)], "uniform": [("mp", spread)], "hybrid": [("mp", placed), ("dp", spread)]}
collection.shard(shard_matrix=[placed[gpu::GPUS] + spread for gpu in range(GPUS)],
                 shard_strategy=strategy[args.shard_plan])
model.add(collection)


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t


def add_mlp(bottom, name, widths):
    """Fully connected layers; the name of their output."""
    for i, width in enumerate(widths, start=1):
        add(Layer.InnerProduct, [bottom], [f"{name}_fc{i}"], num_output=width)
        bottom = f"{name}_relu{i}"
        add(Layer.ReLU, [f"{name}_fc{i}"], [bottom])
    return bottom


add(Layer.Concat, [f"vector{slot}" for slot in range(SLOTS)], ["embedding"])
add(Layer.Interaction, [add_mlp("dense", "bottom", (32, 16, WIDTH)), "embedding"], ["interaction"])
add(Layer.InnerProduct, [add_mlp("interaction", "top", (64, 64, 32, 16))], ["logit"], num_output=1)
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.iterations, display=200, eval_interval=400, snapshot=10000000, snapshot_prefix="dlrm")
