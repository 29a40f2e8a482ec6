"""Small models in HugeCTR's language, for the tests of tercel.hugectr."""

import tercel.hugectr as hugectr
from tercel.hugectr.tools import DataGenerator, DataGeneratorParams

SIZES = [5, 20, 30]
Format, Layer = hugectr.DataReaderType_t, hugectr.Layer_t


def generate(folder, format=Format.Norm, **options):
    """Files in list.txt and eval.txt of the folder: 1 label, 2 dense values, 3 slots."""
    defaults = dict(label_dim=1, dense_dim=2, num_slot=3, i64_input_key=True, slot_size_array=SIZES, num_files=2,
                    eval_num_files=1, num_samples_per_file=300, num_samples=600, eval_num_samples=300,
                    source=str(folder / "list.txt"), eval_source=str(folder / "eval.txt"))
    generator = DataGenerator(DataGeneratorParams(format, **{**defaults, **options}))
    generator.generate()
    return generator


def local(rule="SGD", **options):
    """An optimizer that changes the rows of the batch only."""
    return hugectr.CreateOptimizer(hugectr.Optimizer_t[rule], hugectr.Update_t.Local, **options)


def reader_of(folder, format=Format.Norm, **options):
    """What the folder's files are."""
    defaults = dict(source=[str(folder / "list.txt")], eval_source=str(folder / "eval.txt"),
                    check_type=hugectr.Check_t.Sum)
    return hugectr.DataReaderParams(format, **{**defaults, **options})


def model_of(folder, *, solver=None, optimizer=None, reader=None, embedding=None, head=True, inputs=None):
    """
    A model of one embedding "emb" and a linear layer "logit", not compiled. `solver` and `embedding` are arguments
    beside those that it needs.
    """
    of = hugectr.CreateSolver(**{"batchsize": 100, "batchsize_eval": 100, "lr": 0.1, "seed": 3, "i64_input_key": True,
                                 "max_eval_batches": 3, **(solver or {})})
    model = hugectr.Model(of, reader or reader_of(folder), optimizer or local())
    model.add(inputs or hugectr.Input(1, "label", 2, "dense", [hugectr.DataReaderSparseParam("keys", 1, True, 3)]))
    model.add(hugectr.SparseEmbedding(**{
        "embedding_type": hugectr.Embedding_t.LocalizedSlotSparseEmbeddingHash, "embedding_vec_size": 4,
        "workspace_size_per_gpu_in_mb": 1, "slot_size_array": SIZES, "combiner": "sum", "sparse_embedding_name": "emb",
        "bottom_name": "keys", **(embedding or {})}))
    model.add(hugectr.DenseLayer(Layer.Reshape, ["emb"], ["flat"], leading_dim=12))
    model.add(hugectr.DenseLayer(Layer.Concat, ["flat", "dense"], ["all"]))
    if head:
        model.add(hugectr.DenseLayer(Layer.InnerProduct, ["all"], ["logit"], num_output=1))
        model.add(hugectr.DenseLayer(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
    return model
