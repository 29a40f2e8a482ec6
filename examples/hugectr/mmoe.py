"""
Mixture of experts for two tasks in HugeCTR's language, on generated Parquet files:

    python -m tercel.hugectr examples/hugectr/mmoe.py
"""

import argparse

import hugectr
from hugectr.tools import DataGenerator, DataGeneratorParams

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=600)
parser.add_argument("--folder", default="mmoe_data")
args = parser.parse_args()

SLOTS, WIDTH, EXPERTS, OUT = 8, 8, 3, 16
sizes = [60] * SLOTS
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Parquet, label_dim=2, dense_dim=0, num_slot=SLOTS, i64_input_key=False,
    slot_size_array=sizes, num_files=4, eval_num_files=1, num_samples_per_file=10000, **files)).generate()

solver = hugectr.CreateSolver(max_eval_batches=10, batchsize_eval=1000, batchsize=500, lr=0.05, seed=1)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Parquet, slot_size_array=sizes,
                                  check_type=hugectr.Check_t.Sum, **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.AdaGrad, update_type=hugectr.Update_t.Local)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dims=[1, 1], label_names=["income", "married"], dense_dim=0, dense_name="dense",
                        data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data", 1, True, SLOTS)]))
model.add(hugectr.SparseEmbedding(
    embedding_type=hugectr.Embedding_t.LocalizedSlotSparseEmbeddingHash, workspace_size_per_gpu_in_mb=10,
    embedding_vec_size=WIDTH, combiner="sum", sparse_embedding_name="embedding", bottom_name="data"))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t
add(Layer.Reshape, ["embedding"], ["flat"], leading_dim=SLOTS * WIDTH)
for e in range(EXPERTS):
    add(Layer.InnerProduct, ["flat"], [f"e{e}_fc"], num_output=OUT)
    add(Layer.ReLU, [f"e{e}_fc"], [f"e{e}"])
for task in "AB":
    add(Layer.InnerProduct, ["flat"], [f"g{task}_fc"], num_output=EXPERTS)
    add(Layer.Softmax, [f"g{task}_fc"], [f"g{task}"])
    add(Layer.Slice, [f"g{task}"], [f"g{task}{e}" for e in range(EXPERTS)], ranges=[(e, e + 1) for e in range(EXPERTS)])
    for e in range(EXPERTS):
        add(Layer.Scale, [f"g{task}{e}"], [f"g{task}{e}_wide"], axis=0, factor=OUT)
        add(Layer.ElementwiseMultiply, [f"e{e}", f"g{task}{e}_wide"], [f"{task}{e}"])
    add(Layer.Add, [f"{task}{e}" for e in range(EXPERTS)], [f"{task}_in"])
    add(Layer.InnerProduct, [f"{task}_in"], [f"{task}_fc"], num_output=16)
    add(Layer.ReLU, [f"{task}_fc"], [f"{task}_relu"])
    add(Layer.InnerProduct, [f"{task}_relu"], [f"{task}_logit"], num_output=1)
add(Layer.BinaryCrossEntropyLoss, ["A_logit", "income"], ["lossA"])
add(Layer.BinaryCrossEntropyLoss, ["B_logit", "married"], ["lossB"])
model.compile(loss_names=["income", "married"], loss_weights=[0.5, 0.5])
model.summary()
model.fit(max_iter=args.iterations, display=200, eval_interval=args.iterations, snapshot=1000000)
