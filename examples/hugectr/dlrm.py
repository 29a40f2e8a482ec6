"""
DLRM in HugeCTR's language as of 23.08, on generated Raw files: fused layers, a one-hot embedding,
the pairwise interaction.

    python -m tercel.hugectr examples/hugectr/dlrm.py
"""

import argparse

import hugectr
from hugectr.tools import DataGenerator, DataGeneratorParams
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=2000)
parser.add_argument("--folder", default="dlrm_data")
args = parser.parse_args()

SLOTS, DENSE, WIDTH = 26, 13, 16
sizes = [60] * SLOTS
rows = dict(num_samples=160000, eval_num_samples=20000)
files = dict(source=f"{args.folder}/train.bin", eval_source=f"{args.folder}/eval.bin")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Raw, label_dim=1, dense_dim=DENSE, num_slot=SLOTS, i64_input_key=False,
    slot_size_array=sizes, **rows, **files)).generate()

solver = hugectr.CreateSolver(max_eval_batches=20, batchsize_eval=1000, batchsize=500, lr=0.1, warmup_steps=50,
                              vvgpu=[[0, 1, 2, 3]], use_mixed_precision=True, scaler=1024, is_dlrm=True, seed=1,
                              metrics_spec={hugectr.MetricsType.AUC: 0.999, hugectr.MetricsType.AverageLoss: 0.0})
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Raw, check_type=hugectr.Check_t.Non,
                                  **rows, **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.AdaGrad, update_type=hugectr.Update_t.Local,
                                    initial_accu_value=0.1)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
                        data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data1", 1, True, SLOTS)]))
model.add(hugectr.SparseEmbedding(
    embedding_type=hugectr.Embedding_t.LocalizedSlotSparseEmbeddingOneHot, slot_size_array=sizes,
    workspace_size_per_gpu_in_mb=100, embedding_vec_size=WIDTH, combiner="sum", sparse_embedding_name="embedding",
    bottom_name="data1", optimizer=optimizer))


def fused(position, bottoms, tops, width, activation=hugectr.Activation_t.Relu):
    model.add(hugectr.DenseLayer(layer_type=hugectr.Layer_t.FusedInnerProduct, pos_type=position, bottom_names=bottoms,
                                 top_names=tops, num_output=width, act_type=activation))


Position = hugectr.FcPosition_t
fused(Position.Head, ["dense"], ["fc11", "fc12", "fc13", "fc14"], 32)
fused(Position.Tail, ["fc11", "fc12", "fc13", "fc14"], ["fc2"], WIDTH)
model.add(hugectr.DenseLayer(layer_type=hugectr.Layer_t.Interaction, bottom_names=["fc2", "embedding"],
                             top_names=["interaction", "interaction_grad"]))
fused(Position.Head, ["interaction", "interaction_grad"], ["fc31", "fc32", "fc33", "fc34"], 64)
fused(Position.Body, ["fc31", "fc32", "fc33", "fc34"], ["fc41", "fc42", "fc43", "fc44"], 32)
fused(Position.Tail, ["fc41", "fc42", "fc43", "fc44"], ["fc5"], 1, hugectr.Activation_t.Non)
model.add(hugectr.DenseLayer(layer_type=hugectr.Layer_t.BinaryCrossEntropyLoss, bottom_names=["fc5", "label"],
                             top_names=["loss"]))
model.graph_to_json(graph_config_file=f"{args.folder}/dlrm.json")
model.compile()
model.summary()
model.fit(max_iter=args.iterations, display=200, eval_interval=args.iterations, snapshot=10000000)
print("rank", MPI.COMM_WORLD.Get_rank())
