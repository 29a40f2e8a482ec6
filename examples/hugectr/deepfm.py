"""
DeepFM in HugeCTR's language, on generated Parquet files with the schema of Criteo's data:

    python -m tercel.hugectr examples/hugectr/deepfm.py
"""

import argparse

import hugectr
from hugectr.tools import DataGenerator, DataGeneratorParams

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=1000)
parser.add_argument("--folder", default="deepfm_data")
args = parser.parse_args()

SLOTS, DENSE, WIDTH = 26, 13, 8
sizes = [60] * SLOTS
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Parquet, label_dim=1, dense_dim=DENSE, num_slot=SLOTS, i64_input_key=True,
    slot_size_array=sizes, num_files=4, eval_num_files=1, num_samples_per_file=40000, **files)).generate()

solver = hugectr.CreateSolver(max_eval_batches=20, batchsize_eval=1000, batchsize=500, lr=0.002, i64_input_key=True,
                              seed=1)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Parquet, check_type=hugectr.Check_t.Non,
                                  slot_size_array=sizes, **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Local)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(1, "label", DENSE, "dense", [hugectr.DataReaderSparseParam("data", 1, False, SLOTS)]))
model.add(hugectr.SparseEmbedding(hugectr.Embedding_t.LocalizedSlotSparseEmbeddingHash, 1, WIDTH + 1, "sum",
                                  "embedding", "data", sizes, optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t
add(Layer.Reshape, ["embedding"], ["rows"], leading_dim=WIDTH + 1)
add(Layer.Slice, ["rows"], ["vectors", "weights"], ranges=[(0, WIDTH), (WIDTH, WIDTH + 1)])
add(Layer.Reshape, ["vectors"], ["vectors_flat"], leading_dim=SLOTS * WIDTH)
add(Layer.Reshape, ["weights"], ["weights_flat"], leading_dim=SLOTS)
add(Layer.WeightMultiply, ["dense"], ["dense_vectors"], weight_dims=[DENSE, WIDTH])
add(Layer.WeightMultiply, ["dense"], ["dense_weights"], weight_dims=[DENSE, 1])
add(Layer.Concat, ["vectors_flat", "dense_vectors"], ["all"])
bottom = "all"
for i in range(1, 4):
    add(Layer.InnerProduct, [bottom], [f"fc{i}"], num_output=64)
    add(Layer.ReLU, [f"fc{i}"], [f"relu{i}"])
    bottom = f"dropout{i}"
    add(Layer.Dropout, [f"relu{i}"], [bottom], dropout_rate=0.1)
add(Layer.InnerProduct, [bottom], ["deep"], num_output=1)
add(Layer.FmOrder2, ["all"], ["fm"], out_dim=WIDTH)
add(Layer.ReduceSum, ["fm"], ["second_order"], axis=1)
add(Layer.Concat, ["weights_flat", "dense_weights"], ["first"])
add(Layer.ReduceSum, ["first"], ["first_order"], axis=1)
add(Layer.Add, ["deep", "second_order", "first_order"], ["logit"])
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.iterations, display=200, eval_interval=args.iterations, snapshot=10000000)
model.save_params_to_files(f"{args.folder}/deepfm", args.iterations)
