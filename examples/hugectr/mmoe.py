"""
Two tasks of one network in HugeCTR's language, on generated Parquet files with the schema of the census of incomes: a
mixture of experts, or layers that both tasks share.

    python -m tercel.hugectr examples/hugectr/mmoe.py [--shared-bottom]
"""

import argparse

import hugectr
import numpy as np
from hugectr.tools import DataGenerator, DataGeneratorParams
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--shared-bottom", action="store_true")
parser.add_argument("--iterations", type=int, default=1600)
parser.add_argument("--folder", default="mmoe_data")
args = parser.parse_args()

SLOTS, SIZE, WIDTH, EXPERTS, OUT = 32, 20, 8, 3, 16
TASKS = {"A": "50k_label", "B": "married_label"}
effects = np.random.default_rng(1).normal(size=(SLOTS, SIZE, len(TASKS)))


def truth(dense, keys):
    """A sum of effects of the keys, which are others for each task."""
    return 2 * sum(effects[slot, of[:, 0]] for slot, of in enumerate(keys)) / SLOTS**0.5


sizes = [SIZE] * SLOTS
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Parquet, label_dim=len(TASKS), dense_dim=0, num_slot=SLOTS, i64_input_key=False,
    slot_size_array=sizes, num_files=4, eval_num_files=1, num_samples_per_file=20000, **files), truth).generate()

solver = hugectr.CreateSolver(max_eval_batches=20, batchsize_eval=1000, batchsize=500, lr=0.3, vvgpu=[[0]],
                              metrics_spec={hugectr.MetricsType.AUC: 1.0}, repeat_dataset=True, i64_input_key=False,
                              seed=1)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Parquet, slot_size_array=sizes,
                                  check_type=hugectr.Check_t.Sum, **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.SGD, update_type=hugectr.Update_t.Local,
                                    atomic_update=True)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dims=[1] * len(TASKS), label_names=list(TASKS.values()), dense_dim=0, dense_name="dense",
                        data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data", 1, True, SLOTS)]))
model.add(hugectr.SparseEmbedding(
    embedding_type=hugectr.Embedding_t.LocalizedSlotSparseEmbeddingHash, workspace_size_per_gpu_in_mb=10,
    embedding_vec_size=WIDTH, combiner="sum", sparse_embedding_name="embedding", bottom_name="data",
    optimizer=optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t


def add_mlp(bottom, name, widths):
    """Fully connected layers; the name of their output."""
    for i, width in enumerate(widths, start=1):
        add(Layer.InnerProduct, [bottom], [f"{name}_fc{i}"], num_output=width)
        add(Layer.ReLU, [f"{name}_fc{i}"], [f"{name}_relu{i}"])
        bottom = f"{name}_dropout{i}"
        add(Layer.Dropout, [f"{name}_relu{i}"], [bottom], dropout_rate=0.1)
    return bottom


add(Layer.Reshape, ["embedding"], ["flat"], leading_dim=SLOTS * WIDTH)
if args.shared_bottom:
    shared = add_mlp("flat", "shared", (OUT, 2 * OUT))
    inputs = dict.fromkeys(TASKS, shared)
else:
    experts = [add_mlp("flat", f"e{e}", (2 * OUT, OUT)) for e in range(EXPERTS)]
    inputs = {task: f"tower_{task}" for task in TASKS}
    for task, top in inputs.items():
        gates = [f"g{task}_e{e}" for e in range(EXPERTS)]
        add(Layer.InnerProduct, ["flat"], [f"g{task}_fc"], num_output=EXPERTS)
        add(Layer.Softmax, [f"g{task}_fc"], [f"g{task}"])
        add(Layer.Slice, [f"g{task}"], gates, ranges=[(e, e + 1) for e in range(EXPERTS)])
        for expert, gate in zip(experts, gates):
            add(Layer.Scale, [gate], [f"{gate}_wide"], axis=0, factor=OUT)
            add(Layer.ElementwiseMultiply, [expert, f"{gate}_wide"], [f"{gate}_out"])
        add(Layer.Add, [f"{gate}_out" for gate in gates], [top])
for task, bottom in inputs.items():
    add(Layer.InnerProduct, [add_mlp(bottom, task, (16,))], [f"{task}_logit"], num_output=1)
for task, label in TASKS.items():
    add(Layer.BinaryCrossEntropyLoss, [f"{task}_logit", label], [f"loss{task}"])
model.compile(loss_names=list(TASKS.values()), loss_weights=[0.5] * len(TASKS))
model.summary()
model.fit(max_iter=args.iterations, display=400, eval_interval=400, snapshot=1000000, snapshot_prefix="mmoe")
print("ranks:", MPI.COMM_WORLD.Get_size())
