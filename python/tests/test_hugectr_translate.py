"""HugeCTR's layers as JSON, and that JSON as a graph of Tercel's."""

import pytest

import tercel as tc
import tercel.hugectr as hugectr
from tercel.hugectr.translate import engine_layers

Layer, Init = hugectr.Layer_t, hugectr.Initializer_t
DATA = {"type": "Data", "label": {"top": "y", "label_dim": 1}, "dense": {"top": "d", "dense_dim": 3}, "sparse": []}


def json_of(layer, bottoms=("a",), tops=("b",), **options):
    out = hugectr.DenseLayer(layer, list(bottoms), list(tops), **options).to_json()
    assert out.pop("type") == layer.value
    for key, names in (("bottom", bottoms), ("top", tops)):
        assert out.pop(key) == (names[0] if len(names) == 1 else list(names))
    return out


@pytest.mark.parametrize("layer, options, expected", [
    (Layer.InnerProduct, dict(num_output=5), {"fc_param": {"num_output": 5}}),
    (Layer.InnerProduct, dict(num_output=5, weight_init_type=Init.XavierNorm, bias_init_type=Init.Zero),
     {"fc_param": {"num_output": 5, "weight_init": "XavierNorm", "bias_init": "Zero"}}),
    (Layer.MLP, dict(num_outputs=[4, 1], activations=[hugectr.Activation_t.Relu, hugectr.Activation_t.Non]),
     {"mlp_param": {"num_outputs": [4, 1], "use_bias": True, "activations": ["Relu", "Non"]}}),
    (Layer.MLP, dict(num_output=4, act_type=hugectr.Activation_t.Non, biases=[False]),
     {"mlp_param": {"num_output": 4, "biases": [False], "activation": "Non"}}),
    (Layer.MultiCross, dict(num_layers=3), {"mc_param": {"num_layers": 3}}),
    (Layer.MultiCross, dict(num_layers=3, projection_dim=8), {"mc_param": {"num_layers": 3, "projection_dim": 8}}),
    (Layer.BatchNorm, dict(factor=0.5, eps=1e-3, gamma_init_type=Init.Zero),
     {"bn_param": {"factor": 0.5, "eps": 1e-3, "gamma_init": "Zero"}}),
    (Layer.LayerNorm, dict(eps=1e-3), {"ln_param": {"eps": 1e-3}}),
    (Layer.Dropout, dict(dropout_rate=0.2), {"rate": 0.2}),
    (Layer.ELU, dict(elu_alpha=0.2), {"elu_param": {"alpha": 0.2}}),
    (Layer.PReLU_Dice, dict(elu_alpha=0.2, eps=1e-8), {"prelu_dice_param": {"alpha": 0.2, "eps": 1e-8}}),
    (Layer.Reshape, dict(leading_dim=6), {"leading_dim": 6}),
    (Layer.Reshape, dict(leading_dim=6, time_step=2), {"leading_dim": 6, "time_step": 2}),
    (Layer.Reshape, dict(selected=True, selected_slots=[0, 2]), {"selected": [0, 2]}),
    (Layer.Reshape, dict(shape=[-1, 4]), {"shape": [-1, 4]}),
    (Layer.Slice, dict(ranges=[(0, 2), (1, 3)]), {"ranges": [[0, 2], [1, 3]]}),
    (Layer.WeightMultiply, dict(weight_dims=[3, 2]), {"weight_dims": [3, 2]}),
    (Layer.FmOrder2, dict(out_dim=4), {"out_dim": 4}),
    (Layer.Scale, dict(axis=0, factor=10.0), {"scale_param": {"axis": 0, "factor": 10}}),
    (Layer.Softmax, {}, {}), (Layer.Softmax, dict(factor=0.5), {"factor": 0.5}),
    (Layer.Concat, dict(axis=2), {"axis": 2}), (Layer.ReduceMean, {}, {"axis": 1}), (Layer.ReduceSum, {}, {"axis": 1}),
    (Layer.Gather, dict(indices=[1]), {"indices": [1]}),
    (Layer.Select, dict(dim=1, index=[2]), {"dim": 1, "index": [2]}),
    (Layer.SequenceMask, dict(max_sequence_len_from=3, max_sequence_len_to=4),
     {"max_sequence_len_from": 3, "max_sequence_len_to": 4}),
    (Layer.MultiHeadAttention, dict(num_attention_heads=4), {"num_attention_heads": 4, "transpose_b": False}),
    (Layer.GRU, dict(num_output=2, SeqLength=3, vector_size=4),
     {"gru_param": {"num_output": 2, "batchsize": 1, "SeqLength": 3, "vector_size": 4}}),
    (Layer.ReLU, {}, {}), (Layer.Add, {}, {}),
    (Layer.BinaryCrossEntropyLoss, {}, {}),
    (Layer.BinaryCrossEntropyLoss,
     {"use_regularizer": True, "regularizer_type": hugectr.Regularizer_t.L2, "lambda": 0.1},
     {"regularizer": "L2", "lambda": 0.1}),
    (Layer.MultiCrossEntropyLoss, dict(target_weight_vec=[1.0, 2.0]), {"target_weight": [1.0, 2.0]})])
def test_layers_have_hugectrs_parameters(layer, options, expected):
    assert json_of(layer, **options) == expected


@pytest.mark.parametrize("rule, group, names", [
    ("Adam", "adam_hparam", {"beta1", "beta2", "epsilon"}),
    ("AdaGrad", "adagrad_hparam", {"initial_accu_value", "epsilon"}),
    ("MomentumSGD", "momentum_sgd_hparam", {"momentum_factor"}), ("Nesterov", "nesterov_hparam", {"momentum_factor"}),
    ("Ftrl", "ftrl_hparam", {"beta", "lambda1", "lambda2"}), ("SGD", "sgd_hparam", {"atomic_update"})])
def test_optimizers(rule, group, names):
    of = hugectr.CreateOptimizer(hugectr.Optimizer_t[rule])
    assert of.to_json()["type"] == rule and set(of.to_json()[group]) == names
    assert of.to_json()["update_type"] == "Global"
    # HugeCTR has Ftrl for tables in one form only.
    assert of.of_rows()["update_type"] == ("Local" if rule == "Ftrl" else "Global")


def test_fused_layers_and_their_memory():
    layers = [DATA]
    for bottoms, tops, act in ((["d"], ["a1", "a2", "a3", "a4"], "Relu"), (["a1", "a2", "a3", "a4"], ["b"], "Non")):
        layers.append(hugectr.DenseLayer(Layer.FusedInnerProduct, bottoms, tops, num_output=4,
                                         act_type=hugectr.Activation_t[act]).to_json())
    layers.append(hugectr.DenseLayer(Layer.Interaction, ["b", "e"], ["i", "i_grad"]).to_json())
    layers.append(hugectr.DenseLayer(Layer.FusedInnerProduct, ["i", "i_grad"], ["c"], num_output=1).to_json())
    layers.append(hugectr.DenseLayer(Layer.BinaryCrossEntropyLoss, ["c", "y"], ["loss"]).to_json())
    assert engine_layers(layers)[1:] == [
        {"type": "MLP", "bottom": "d", "top": "a1", "mlp_param": {"num_output": 4, "activation": "Relu"}},
        {"type": "MLP", "bottom": "a1", "top": "b", "mlp_param": {"num_output": 4, "activation": "Non"}},
        {"type": "Interaction", "bottom": ["b", "e"], "top": "i"},
        {"type": "MLP", "bottom": "i", "top": "c", "mlp_param": {"num_output": 1, "activation": "Relu"}},
        {"type": "BinaryCrossEntropyLoss", "bottom": ["c", "y"], "top": "loss"}]


def test_groups_of_layers():
    Act = hugectr.Activation_t
    kind = hugectr.GroupLayer_t.GroupFusedInnerProduct
    group = hugectr.GroupDenseLayer(kind, bottom_name="d", top_name_list=["a", "b"], num_outputs=[8, 1],
                                    last_act_type=Act.Non)
    old = hugectr.GroupDenseLayer(group_layer_type=kind, bottom_name_list=["d", "e"], top_name_list=["a"],
                                  num_outputs=[8])
    assert [(layer.bottom_names, layer.top_names, layer.num_output, layer.act_type) for layer in group.layers] == [
        (["d"], ["a"], 8, Act.Relu), (["a"], ["b"], 1, Act.Non)]
    assert [layer.bottom_names for layer in old.layers] == [["d"]]
    with pytest.raises(tc.ConfigError, match="as many names in top_name_list as widths"):
        hugectr.GroupDenseLayer(hugectr.GroupLayer_t.GroupFusedInnerProduct, "d", ["a"], [])


def test_what_nothing_reads_is_left_out():
    layers = [DATA, hugectr.DenseLayer(Layer.Slice, ["d"], ["a", "b", "c"], ranges=[(0, 1), (1, 2), (2, 3)]).to_json(),
              hugectr.DenseLayer(Layer.ReLU, ["b"], ["r"]).to_json(),
              hugectr.DenseLayer(Layer.ReLU, ["r"], ["s"]).to_json(),
              hugectr.DenseLayer(Layer.Concat, ["a", "c"], ["x"]).to_json(),
              hugectr.DenseLayer(Layer.BinaryCrossEntropyLoss, ["x", "y"], ["loss"]).to_json()]
    out = engine_layers(layers)
    assert [layer["type"] for layer in out] == ["Data", "Slice", "Concat", "BinaryCrossEntropyLoss"]
    assert out[1]["top"] == ["a", "c"] and out[1]["ranges"] == [[0, 1], [2, 3]] and out[0]["allow_unread"] is True
    assert layers[1]["top"] == ["a", "b", "c"]  # what was given stays


def test_weights_of_losses():
    loss = hugectr.DenseLayer(Layer.BinaryCrossEntropyLoss, ["d", "y"], ["loss"]).to_json()
    assert engine_layers([DATA, loss], {"y": 0.5})[1]["weight"] == 0.5 and "weight" not in loss
    with pytest.raises(tc.ConfigError, match="there is no loss of the label 'z'; known: y"):
        engine_layers([DATA, loss], {"z": 0.5})


def test_old_names():
    assert engine_layers([DATA, {"type": "DotProduct", "bottom": ["d", "d"], "top": "m"},
                          {"type": "ReLUHalf", "bottom": "m", "top": "r"},
                          {"type": "BinaryCrossEntropyLoss", "bottom": ["r", "y"], "top": "loss"}])[1:3] == [
        {"type": "ElementwiseMultiply", "bottom": ["d", "d"], "top": "m"}, {"type": "ReLU", "bottom": "m", "top": "r"}]
    assert hugectr.DataSourceType_t is hugectr.FileSystemType_t


def test_forms_of_input():
    param = hugectr.DataReaderSparseParam("k", [1, 2], False, 2)
    forms = [hugectr.Input(1, "y", 3, "d", [param]),
             hugectr.Input(label_dim=1, label_name="y", dense_dim=3, dense_name="d",
                           data_reader_sparse_param_array=[param]),
             hugectr.Input([1], ["y"], 3, "d", [param]), hugectr.Input([1], ["y"], [2.0], 3, "d", [param])]
    for form in forms:
        assert form.to_json() == {"type": "Data", "label": {"top": "y", "label_dim": 1},
                                  "dense": {"top": "d", "dense_dim": 3},
                                  "sparse": [{"top": "k", "nnz_per_slot": [1, 2], "is_fixed_length": False,
                                              "slot_num": 2}]}
    assert [form.label_weights for form in forms] == [[1.0], [1.0], [1.0], [2.0]]


def test_every_type_of_the_engine_has_a_name():
    import tercel.recsys as tr

    known = {layer.value for layer in Layer}
    ours = set(tr.layer_types()) - {"SparseEmbedding", "EmbeddingLookup"}
    ours -= {"CompressedInteraction", "FieldAwareInteraction", "GroupedInnerProduct", "PaddingMask"}  # not HugeCTR's
    assert {name for name in ours if name not in known} == set()
